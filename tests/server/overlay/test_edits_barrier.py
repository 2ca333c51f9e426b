"""Before a process starts: what is unsaved is saved where that is ours to do, else named."""

import os
from collections.abc import Mapping
from pathlib import Path

from agent_core.workspace import NO_NEEDS, FileText, Process
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.permissions.call_permission import Needs
from tests.support.clients.editors import Window, settled
from tests.support.lsp.lsp_behaviours import Honest
from tests.support.lsp.lsp_profiles import NEOVIM_0_11, PANEL, Profile
from tiller_server.lsp.overlay.save_barrier import SaveBeforeRun
from tiller_server.lsp.overlay.workspace_files import OverlayFiles


class _Processes:
    def __init__(self, told: str | None = None) -> None:
        self._told = told
        self.started: list[tuple[str, ...]] = []

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        self.started.append(argv)
        message = f"{argv} in {cwd} with {len(env)} variables"
        raise FileNotFoundError(message)

    async def before_start(self) -> str | None:
        return self._told


def real(path: Path) -> Path:
    """Follow the links in a path."""
    return Path(os.path.realpath(path))


async def edited(
    tmp_path: Path, profile: Profile, *, typed: str = ""
) -> tuple[Window, OverlayFiles, Path]:
    """Edit an open document once."""
    path = real(tmp_path) / "a.py"
    path.write_text("old\n")
    window = Window(profile)
    window.desk.open_file(path)
    if typed:
        window.desk.change(path.as_uri(), typed)
    files = OverlayFiles(DiskFiles((path.parent,), path.parent))
    files.attach(window.editor)
    await settled(window)
    base = await files.read(path)
    assert isinstance(base, FileText)
    _ = await files.write(path, f"{base.text}edited\n", base=base)
    return window, files, path


async def test_stale_files_are_named_until_they_are_saved(tmp_path: Path) -> None:
    window, files, path = await edited(tmp_path, NEOVIM_0_11)
    processes = SaveBeforeRun(_Processes(), files)
    told = f"Unsaved in the editor, so programs read the old text from the disk: {path}."
    assert await processes.before_start() == told
    assert await files.edits.unsaved() == (path,)
    window.desk.save(path.as_uri())
    assert await processes.before_start() is None
    assert await files.edits.unsaved() == ()


async def test_nothing_is_said_of_what_was_saved_with_the_edit(tmp_path: Path) -> None:
    _, files, path = await edited(tmp_path, PANEL)
    assert await SaveBeforeRun(_Processes(), files).before_start() is None
    assert path.read_text() == "old\nedited\n"


async def test_an_edit_that_could_not_be_saved_at_once_is_saved_before_the_process(
    tmp_path: Path,
) -> None:
    window, files, path = await edited_without_save(tmp_path)
    assert await files.edits.unsaved() == (path,)
    assert await SaveBeforeRun(_Processes(), files).before_start() is None
    assert path.read_text() == "old\nedited\n"
    assert window.asked[-1][1]["reason"] == "command"


async def edited_without_save(root: Path) -> tuple[Window, OverlayFiles, Path]:
    """Edit a document while its editor does not save."""
    path = real(root) / "a.py"
    path.write_text("old\n")
    window = Window(PANEL, edits=Honest())
    saves = window.handlers.pop("agent/documents/save")
    window.desk.open_file(path)
    files = OverlayFiles(DiskFiles((path.parent,), path.parent))
    files.attach(window.editor)
    await settled(window)
    base = await files.read(path)
    assert isinstance(base, FileText)
    written = await files.write(path, "old\nedited\n", base=base)
    assert written.saved is False
    window.handlers["agent/documents/save"] = saves
    return window, files, path


async def test_what_the_user_typed_is_never_saved_for_them(tmp_path: Path) -> None:
    window, files, path = await edited(tmp_path, PANEL, typed="old\ntyped\n")
    told = await SaveBeforeRun(_Processes("Disk is slow."), files).before_start()
    assert told == (
        f"Disk is slow. Unsaved in the editor, so programs read the old text from the disk: {path}."
    )
    assert path.read_text() == "old\n"
    assert [method for method, _ in window.asked] == ["agent/edit/apply"]


async def test_what_nobody_has_open_any_more_is_not_stale(tmp_path: Path) -> None:
    window, files, _ = await edited(tmp_path, NEOVIM_0_11)
    files.detach(window.editor)
    assert await SaveBeforeRun(_Processes(), files).before_start() is None
