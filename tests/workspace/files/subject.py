"""What a test of an adapter of `Files` works on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_core.workspace import Files
from tests.support.workspace.rooted_workspace import Mount


class Contents(Protocol):
    """The files as they truly are, seen past the adapter."""

    def put(self, path: Path, data: bytes) -> None: ...

    def get(self, path: Path) -> bytes | None: ...

    def remove(self, path: Path) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An adapter with an empty workspace."""

    files: Files
    root: Path
    home: Path
    """Outside of the root."""
    contents: Contents


class OnDisk:
    """The files of this machine."""

    def put(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _ = path.write_bytes(data)

    def get(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None

    def remove(self, path: Path) -> None:
        path.unlink()


class Mounted:
    """The files of a place that has another path for the adapter."""

    def __init__(self, mount: Mount) -> None:
        self._mount = mount
        self._disk = OnDisk()

    def put(self, path: Path, data: bytes) -> None:
        self._disk.put(self._mount.out(path), data)

    def get(self, path: Path) -> bytes | None:
        return self._disk.get(self._mount.out(path))

    def remove(self, path: Path) -> None:
        self._disk.remove(self._mount.out(path))
