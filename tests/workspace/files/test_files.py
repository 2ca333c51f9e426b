"""The files on disk and in memory keep the same promises."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.disk.gate.walk import WalkGate
from tests.support.workspace.memory_files import MemoryFiles
from tests.workspace.files.conformance import FilesConformance
from tests.workspace.files.subject import OnDisk, Subject


class _InMemory:
    def __init__(self, files: MemoryFiles) -> None:
        self._files = files

    def put(self, path: Path, data: bytes) -> None:
        self._files.put(path, data)

    def get(self, path: Path) -> bytes | None:
        return self._files.contents().get(path)

    def remove(self, path: Path) -> None:
        self._files.remove(path)


class TestDiskFiles(FilesConformance):
    """On disk."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        base = Path(os.path.realpath(tmp_path))
        root, home = base / "ws", base / "home"
        root.mkdir()
        home.mkdir()
        return Subject(files=DiskFiles((root,), home), root=root, home=home, contents=OnDisk())


class TestDiskFilesNameByName(FilesConformance):
    """On disk, where the system cannot refuse links in one step."""

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        base = Path(os.path.realpath(tmp_path))
        root, home = base / "ws", base / "home"
        root.mkdir()
        home.mkdir()
        files = DiskFiles((root,), home, gate=WalkGate())
        return Subject(files=files, root=root, home=home, contents=OnDisk())


class TestMemoryFiles(FilesConformance):
    """In memory."""

    @pytest.fixture
    def subject(self) -> Subject:
        root, home = Path("/ws"), Path("/home/me")
        files = MemoryFiles((root,), home)
        return Subject(files=files, root=root, home=home, contents=_InMemory(files))
