"""Copies a CPython, without what Tiller never uses, so that it runs wherever the copy lies."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
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


def copy_libraries(tree: Path, *, patchelf: Path) -> tuple[Path, ...]:
    """Copy the libraries that programs and modules of a copied Python need, and let these look for them in the copy.

    Args:
        tree: The copy.
        patchelf: The program that changes where a file looks for libraries.

    Returns:
        Where the libraries were before.
    """
    lib = tree / "lib"
    binaries = [*_elf_files(tree / "bin"), *_elf_files(lib)]
    needed: dict[str, Path] = {}
    for binary in binaries:
        needed |= _linked(binary)
    for name, path in needed.items():
        shutil.copy2(path.resolve(), lib / name)
    for binary in [*binaries, *(lib / name for name in needed)]:
        _call("strip", "--strip-unneeded", str(binary))
        if _linked(binary):
            origin = os.path.relpath(lib, binary.parent)
            _call(str(patchelf), "--set-rpath", f"$ORIGIN/{origin}", str(binary))
    return tuple(sorted(needed.values()))


def _elf_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


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
