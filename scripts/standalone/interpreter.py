"""Copies a CPython, without what Tiller never uses, so that it runs wherever the copy lies."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEFT_OUT: Final = frozenset(
    {"__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests"}
    | {"tkinter", "turtle.py", "turtledemo"}
)  # fmt: skip
"""Names in the standard library."""
PREFIXES: Final = (
    *("_crypt.", "_ctypes_test.", "_curses", "_dbm.", "_gdbm.", "_test", "_tkinter.", "_xxtest"),
    *("config-", "nis.", "readline.", "xxlimited"),
)
"""What the names of modules begin with that need libraries and are used by nothing; `readline` and `gdbm` are GPL."""
OF_THE_SYSTEM: Final = frozenset(
    {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6"}
    | {"libpthread.so.0", "libresolv.so.2", "librt.so.1", "libutil.so.1", "linux-vdso.so.1"}
)
"""The C library is that of the machine, which has to be as new as that of the machine that this is built on."""
GLIBC: Final = re.compile(r"\(GLIBC_(\d+\.\d+)")
ABOUT: Final = """
import json, sys, sysconfig
print(json.dumps({
    "version": "{}.{}".format(*sys.version_info),
    "release": sys.version.split()[0],
    "prefix": sys.base_prefix,
    "schemes": sysconfig.get_scheme_names(),
}))
"""


class InterpreterUnfit(Exception):
    """A Python that cannot be copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """An installed CPython."""

    version: str
    """Its two first numbers."""
    release: str
    prefix: Path

    @classmethod
    def of(cls, python: Path) -> "Interpreter":
        """Describe an interpreter; that of a virtual environment is the one it was made with.

        Raises:
            InterpreterUnfit: It is that of Debian.
        """
        described = subprocess.run(  # noqa: S603 - the interpreter of the caller
            [str(python), "-I", "-c", ABOUT], capture_output=True, text=True, check=True
        )
        about = json.loads(described.stdout)
        prefix = Path(about["prefix"])
        # Debian adds a scheme of its own, and looks for modules in `dist-packages`.
        if "posix_local" in about["schemes"]:
            message = f"{python} belongs to Debian, which keeps modules elsewhere; name another with --python"
            raise InterpreterUnfit(message)
        return cls(version=about["version"], release=about["release"], prefix=prefix)

    def copy(self, into: Path) -> Path:
        """Copy it into a new folder, and return the copied program."""
        name = f"python{self.version}"
        shutil.copytree(
            self.prefix / "lib" / name, into / "lib" / name, symlinks=True, ignore=_ignored
        )
        (into / "lib" / name / "site-packages").mkdir()
        (into / "bin").mkdir()
        shutil.copy2(self.prefix / "bin" / name, into / "bin" / name)
        (into / "bin" / "python3").symlink_to(name)
        return into / "bin" / name


def _ignored(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name in LEFT_OUT or name.startswith(PREFIXES)}


def elf_files(folder: Path) -> tuple[Path, ...]:
    """Return the programs, modules and libraries in a folder, in the order of their names."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return tuple(sorted(path for path in paths if _magic(path) == b"\x7fELF"))


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def copy_libraries(program: Path, *, own: Iterable[Path], patchelf: Path) -> tuple[Path, ...]:
    """Copy the libraries that a copied Python and its packages need, and let it look for them in the copy.

    Args:
        program: The copied Python.
        own: Its files, without those of packages.
        patchelf: The program that changes where a file looks for libraries.

    Returns:
        Where the libraries were before.
    """
    lib = program.parents[1] / "lib"
    needed: dict[str, Path] = {}
    for binary in elf_files(program.parents[1]):
        needed |= {name: path for name, path in _linked(binary).items() if lib not in path.parents}
    for name, path in needed.items():
        shutil.copy2(path.resolve(), lib / name)
    for binary in [*own, *(lib / name for name in needed)]:
        _call("strip", "--strip-unneeded", str(binary))
        _call(str(patchelf), "--remove-rpath", str(binary))
    # Of the program, and not the newer RUNPATH: then it counts for the modules and libraries that are loaded too.
    _call(str(patchelf), "--force-rpath", "--set-rpath", "$ORIGIN/../lib", str(program))
    return tuple(sorted(needed.values()))


def newest_glibc(tree: Path) -> str:
    """Return the version of the C library that the files of a folder need, such as `2.34`."""
    files = [str(path) for path in elf_files(tree)]
    listed = subprocess.run(["objdump", "-T", *files], capture_output=True, text=True, check=False)  # noqa: S603, S607 - as above
    versions = {tuple(map(int, match.split("."))) for match in GLIBC.findall(listed.stdout)}
    return ".".join(map(str, max(versions)))


def _linked(binary: Path) -> dict[str, Path]:
    """Return the name and the place of each library that a file needs, directly or not, but for those of the system."""
    listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False)  # noqa: S603, S607 - as above
    found: dict[str, Path] = {}
    for line in listed.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and name not in OF_THE_SYSTEM:
            place = rest.partition(" (")[0]
            if not place.startswith("/"):
                message = f"{binary} needs {name}, which is not installed"
                raise InterpreterUnfit(message)
            found[name] = Path(place)
    return found


def _call(*command: str) -> None:
    _ = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - as above
