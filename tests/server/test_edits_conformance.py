"""With editors attached the files keep the promises that every adapter makes."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.adapters.disk import DiskFiles
from server.lsp.edits import EditorFiles
from tests.support.editors import Window
from tests.support.lsp_profiles import MINIMAL, VSCODE, Profile
from tests.workspace.conformance import FilesConformance, Subject


class _OnDisk:
    def put(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def get(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None


class TestEditorFiles(FilesConformance):
    """An editor that has other documents open, one of them through a link."""

    @pytest.fixture(params=[VSCODE, MINIMAL], ids=lambda one: one.name)
    def subject(self, tmp_path: Path, request: pytest.FixtureRequest) -> Subject:
        base = Path(os.path.realpath(tmp_path))
        root, home = base / "ws", base / "home"
        root.mkdir()
        home.mkdir()
        profile: Profile = request.param
        window = Window(profile)
        window.desk.open((root / "open.txt").as_uri(), "open\n")
        window.desk.open("untitled:Untitled-1", "")
        files = EditorFiles(DiskFiles((root,), home))
        files.attach(window.editor)
        return Subject(files=files, root=root, home=home, contents=_OnDisk())
