"""Checks of the archives of a release; each returns its problems as sentences."""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from scripts.vsix.wheels import ROOT
from tiller_server import VERSION

FOREIGN: Final = re.compile(r"([^/]+/)?(tests|bench|node_modules|\.git|\.venv)/")
"""Folders of the checkout that no archive of ours may hold at its top, or in its only folder."""


def version_problems() -> Iterator[str]:
    """Yield places that name another version than the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extension = json.loads((ROOT / "vscode-client/package.json").read_text(encoding="utf-8"))
    places = {
        "pyproject.toml": project["version"],
        "vscode-client/package.json": extension["version"],
    }
    for place, version in places.items():
        if version != VERSION:
            yield f"{place} has the version {version}, and server/tiller_server/__init__.py {VERSION}: write the same one"


def source_problems() -> Iterator[str]:
    """Yield what is not committed: an archive of it cannot be built again."""
    argv = ["git", "status", "--porcelain"]
    changed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - git of the builder
    if changed:
        yield f"{len(changed.splitlines())} files are not committed: commit them, then build again"


def metadata_problems(archives: Iterable[Path]) -> Iterator[str]:
    """Yield the complaint of twine about the metadata that an index would refuse."""
    argv = [sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)]
    checked = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - as above
    if checked.returncode:
        yield f"twine refuses the metadata: {checked.stdout.strip()}"


def content_problems(archive: Path) -> Iterator[str]:
    """Yield files of an archive that do not belong there, or that name the checkout."""
    checkout = str(ROOT).encode()
    is_licensed = False
    for name, data in _members(archive):
        is_licensed |= Path(name).name in {"LICENSE", "LICENSE.txt"}
        if FOREIGN.match(name):
            yield f"{archive.name} holds {name}: leave it out"
        if checkout in data:
            yield f"{archive.name}: {name} names {ROOT}, a folder of this machine"
    if not is_licensed:
        yield f"{archive.name} holds no LICENSE"


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in {".whl", ".vsix"}:
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, opened.read(name)
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            content = packed.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content.read()


def difference_problems(archives: Iterable[Path]) -> Iterator[str]:
    """Yield the archives that differ from those of a second build. Takes as long as the build."""
    with tempfile.TemporaryDirectory() as place:
        into = Path(place)
        tree = into / "standalone" / next(ROOT.glob("build/standalone/tiller-*")).name
        for command in (
            ("hatchling", "build", "-d", place),
            ("scripts.standalone", "--into", place),
            ("scripts.standalone.debian", str(tree), place),
        ):
            argv = [sys.executable, "-m", *command]
            _ = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - as above
        for archive in archives:
            if digest(archive) != digest(into / archive.name):
                yield f"{archive.name} has other bytes when it is built again"


def extension_problems(archives: Iterable[Path]) -> Iterator[str]:
    """Build each extension again in its place, and yield those that have other bytes. Takes as long as the build."""
    for archive in archives:
        before = digest(archive)
        target = archive.name.removeprefix("tiller-").rpartition(f"-{VERSION}")[0]
        argv = [sys.executable, "-m", "scripts.vsix", target]
        _ = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - as above
        if digest(archive) != before:
            yield f"{archive.name} has other bytes when it is built again"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
