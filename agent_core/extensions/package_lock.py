"""Lock file of installed extension packages: a name, a version and the hash of each file. Blocking."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value, threadsafe
from agent_core.resources.paths import EXTENSION_LOCK

FOLDER: Final = "extension-packages"
"""The folder of the installed files, beside the lock file."""


class LockedPackage(Value, frozen=True, kw_only=True):
    """An installed package, pinned by its content."""

    version: str
    source: str
    """The folder, wheel or git URL that it was installed from."""
    commit: str = ""
    """The git commit; empty for other sources."""
    entry: str
    """The source file with the function `extension`, relative to the folder of the package."""
    files: Mapping[str, str]
    """SHA-256 of each file by its relative path with `/`."""

    @property
    def pin(self) -> str:
        """SHA-256 over the paths and hashes of all files."""
        return content_pin(self.files)


class _LockFile(Value, frozen=True, kw_only=True):
    version: int = 1
    packages: Mapping[str, LockedPackage] = msgspec.field(default_factory=dict[str, LockedPackage])


def content_pin(files: Mapping[str, str]) -> str:
    """Return the SHA-256, in hexadecimal, over sorted paths and hashes."""
    lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def hashes_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of all files below a folder; a symbolic link has an empty hash.

    Raises:
        OSError: A file cannot be read.
    """
    files = (path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    return "" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()


def package_folder(config: Path, name: str, package: LockedPackage) -> Path:
    """Return the folder of the installed files of a package."""
    return config / FOLDER / f"{name}-{package.pin[:16]}"


def read_lock(config: Path) -> dict[str, LockedPackage]:
    """Read the installed packages; none when there is no lock file.

    Raises:
        ExtensionBroken: The lock file cannot be read.
    """
    path = config / EXTENSION_LOCK
    try:
        raw = path.read_bytes()
        return dict(msgspec.json.decode(raw, type=threadsafe(_LockFile)).packages)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        message = (
            f"{path} cannot be read ({error}); no installed extension package is used. "
            "Repair the file, or remove it and install the packages again"
        )
        raise ExtensionBroken(message) from error


def lock_text(packages: Mapping[str, LockedPackage]) -> str:
    """Return the text of a lock file."""
    raw = msgspec.json.encode(_LockFile(packages=dict(sorted(packages.items()))))
    return msgspec.json.format(raw, indent=2).decode() + "\n"


def difference_of(package: LockedPackage, folder: Path) -> str:
    """Return how the installed files differ from the lock file, for people; empty: they do not differ."""
    try:
        files = hashes_of(folder)
    except OSError as error:
        return f"its files cannot be read ({error})"
    for path in sorted({*files, *package.files}):
        if files.get(path) != package.files.get(path):
            state = "added" if path not in package.files else "changed"
            return f"{path} was {state if path in files else 'removed'} since it was installed"
    return ""
