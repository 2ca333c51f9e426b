"""What a test of an adapter of `Files` works on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_core.workspace import Files


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
