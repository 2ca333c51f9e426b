"""With editors attached the files keep the promises that every adapter makes."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.clients.editors import Window
from tests.support.lsp.lsp_profiles import MINIMAL, VSCODE, Profile
from tests.workspace.files.conformance import FilesConformance
from tests.workspace.files.subject import OnDisk, Subject
from tiller_server.lsp.overlay.workspace_files import OverlayFiles


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
        files = OverlayFiles(DiskFiles((root,), home))
        files.attach(window.editor)
        return Subject(files=files, root=root, home=home, contents=OnDisk())
