"""Files are deleted and moved through the editor that has them open; what a user did not save is never lost."""

from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    PathRefused,
    StaleText,
    WorkspaceError,
)
from agent_core.workspace import FileBytes
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.clients.editors import OLD, Place, Window, settled
from tests.support.lsp.lsp_behaviours import (
    Held,
    Honest,
    NeverAnswers,
    Refuses,
    SaysAppliedButDidNothing,
)
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, PANEL, VSCODE, Profile
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

ABLE = pytest.mark.parametrize(
    "profile", [VSCODE, PANEL, HELIX, NEOVIM_0_11], ids=lambda one: one.name
)


async def delete(place: Place) -> None:
    await place.files.delete(place.path, base=await place.read())


async def refused(place: Place, kind: type[WorkspaceError], *, target: Path | None = None) -> str:
    """Delete, or move, what must stay; give what is told."""
    await settled(place.window)
    doing = delete(place) if target is None else place.files.move(place.path, target)
    with pytest.raises(kind) as caught:
        await doing
    return str(caught.value)


async def closed(place: Place) -> None:
    with anyio.fail_after(5):
        while place.window.mirror.get(place.uri) is not None:
            await anyio.lowlevel.checkpoint()


@ABLE
async def test_an_open_file_is_deleted_by_its_editor(tmp_path: Path, profile: Profile) -> None:
    place = Place.make(tmp_path, Window(profile))
    await delete(place)
    assert place.window.edits_asked() == [
        {
            "label": "Tiller: delete a.py",
            "edit": {"documentChanges": [{"kind": "delete", "uri": place.uri}]},
        }
    ]
    assert not place.path.exists()
    assert place.window.desk.documents == {}
    assert await place.files.list(place.root) == ()


@ABLE
async def test_an_open_file_is_moved_by_its_editor(tmp_path: Path, profile: Profile) -> None:
    place = Place.make(tmp_path, Window(profile))
    target = place.root / "b.py"
    await settled(place.window)
    await place.files.move(place.path, target)
    assert place.window.edits_asked() == [
        {
            "label": "Tiller: move a.py",
            "edit": {
                "documentChanges": [
                    {
                        "kind": "rename",
                        "oldUri": place.uri,
                        "newUri": target.as_uri(),
                        "options": {"overwrite": False, "ignoreIfExists": False},
                    }
                ]
            },
        }
    ]
    assert (place.path.exists(), target.read_text()) == (False, OLD)
    assert list(place.window.desk.documents) == [target.as_uri()]
    assert (await place.files.read(target)).sha256


async def test_into_a_new_folder_a_saved_file_is_moved_on_the_disk(tmp_path: Path) -> None:
    """Not every editor makes the folders of a new name."""
    place = Place.make(tmp_path, Window())
    await settled(place.window)
    await place.files.move(place.path, place.root / "new/deep/b.py")
    assert (place.path.exists(), (place.root / "new/deep/b.py").read_text()) == (False, OLD)
    assert place.window.edits_asked() == []


async def test_an_editor_without_such_operations_keeps_its_document_and_the_disk_follows(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(EGLOT))
    target = place.root / "new/b.py"
    await settled(place.window)
    await place.files.move(place.path, target)
    assert (place.path.exists(), target.read_text(), place.text) == (False, OLD, OLD)
    (place.root / "c.py").write_text("c")
    place.window.desk.open_file(place.root / "c.py")
    await settled(place.window)
    await place.files.delete(place.root / "c.py", base=await place.files.read(place.root / "c.py"))
    assert not (place.root / "c.py").exists()
    assert place.window.edits_asked() == []


@pytest.mark.parametrize("profile", [VSCODE, EGLOT, PANEL, HELIX], ids=lambda one: one.name)
async def test_unsaved_text_of_the_user_is_never_lost(tmp_path: Path, profile: Profile) -> None:
    place = Place.make(tmp_path, Window(profile), typed="typed\n")
    for target in (None, place.root / "b.py"):
        told = await refused(place, EditRefused, target=target)
        assert "has unsaved text of the user" in told
    assert (place.text, place.disk) == ("typed\n", OLD)
    assert place.window.edits_asked() == []


async def test_a_file_that_is_only_in_the_editor_stays_there(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.path.unlink()
    for target in (None, place.root / "b.py"):
        _ = await refused(place, EditRefused, target=target)
    assert place.text == OLD


async def test_what_the_user_typed_since_it_was_read_keeps_a_file(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.change(place.uri, "typed\n")
    await settled(place.window)
    with pytest.raises(StaleText):
        await place.files.delete(place.path, base=base)
    assert (place.text, place.disk) == ("typed\n", OLD)


async def test_what_another_program_wrote_since_it_was_read_keeps_a_file(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(NEOVIM_0_11))
    base = await place.read()
    place.path.write_text("formatted\n")
    with pytest.raises(StaleText):
        await place.files.delete(place.path, base=base)
    assert place.disk == "formatted\n"


async def test_edits_of_ours_are_saved_before_a_file_moves(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL, edits=Honest()))
    saves = place.window.handlers.pop("agent/documents/save")
    assert (await place.write("ours\n")).saved is False
    place.window.handlers["agent/documents/save"] = saves
    await place.files.move(place.path, place.root / "b.py")
    assert (place.root / "b.py").read_text() == "ours\n"


async def test_unsaved_edits_of_ours_move_with_their_document(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(VSCODE))
    assert (await place.write("ours\n")).saved is False
    target = place.root / "b.py"
    await place.files.move(place.path, target)
    assert place.window.desk.documents[target.as_uri()].text == "ours\n"
    assert target.read_text() == OLD
    assert await place.files.edits.unsaved() == (target,)
    read = await place.files.read(target)
    await place.files.delete(target, base=read)
    assert not target.exists()
    assert await place.files.edits.unsaved() == ()


async def test_unsaved_edits_of_ours_stay_where_the_editor_cannot_move_them(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(EGLOT))
    assert (await place.write("ours\n")).saved is False
    for target in (None, place.root / "b.py"):
        told = await refused(place, EditRefused, target=target)
        assert "takes no operations on files" in told
    assert (place.text, place.disk) == ("ours\n", OLD)


async def test_a_name_that_an_editor_has_is_not_free(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    target = place.root / "b.py"
    place.window.desk.open(target.as_uri(), "new\n")
    (place.root / "c.py").write_text("c")
    assert "exists already" in await refused(place, StaleText, target=target)
    with pytest.raises(StaleText, match="exists already"):
        await place.files.move(place.root / "c.py", target)
    target.write_text("on disk")
    assert "exists already" in await refused(place, StaleText, target=target)
    assert place.window.edits_asked() == []


@pytest.mark.parametrize("doing", ["delete", "move"])
async def test_a_refusal_is_told_with_its_reason(tmp_path: Path, doing: str) -> None:
    place = Place.make(tmp_path, Window(edits=Refuses(reason="the user said no.")))
    target = place.root / "b.py" if doing == "move" else None
    told = await refused(place, EditRefused, target=target)
    assert told == f"{place.path} was not {doing}d: the editor refused (the user said no)."
    assert place.disk == OLD


@pytest.mark.parametrize("doing", ["delete", "move"])
async def test_what_the_editor_says_is_checked_on_the_disk(tmp_path: Path, doing: str) -> None:
    place = Place.make(tmp_path, Window(edits=SaysAppliedButDidNothing()))
    target = place.root / "b.py" if doing == "move" else None
    told = await refused(place, EditRefused, target=target)
    assert "although the editor said it was" in told
    assert place.disk == OLD


@pytest.mark.parametrize("doing", ["delete", "move"])
async def test_silence_is_told_as_not_known(tmp_path: Path, doing: str) -> None:
    place = Place.make(tmp_path, Window(edits=NeverAnswers()))
    target = place.root / "b.py" if doing == "move" else None
    assert "It may still come" in await refused(place, EditUnverified, target=target)


async def test_an_operation_that_is_out_is_followed_to_its_end(tmp_path: Path) -> None:
    held = Held()
    place = Place.make(tmp_path, Window(edits=held))
    base = await place.read()
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await place.files.delete(place.path, base=base)

        group.start_soon(run)
        with anyio.fail_after(5):
            while not held.waiting:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        held.release()
    await closed(place)
    assert not place.path.exists()


async def test_a_document_opened_through_a_link_leaves_the_link(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    place.window.desk.close(place.uri)
    link = place.root / "link.py"
    link.symlink_to(place.path)
    place.window.desk.open(link.as_uri(), OLD)
    await settled(place.window)
    await closed(place)
    await place.files.move(place.path, place.root / "b.py")
    assert link.is_symlink()
    assert (place.root / "b.py").read_text() == OLD
    assert place.window.edits_asked() == []


async def test_bytes_below_a_document_are_checked_too(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(EGLOT))
    place.path.write_bytes(b"\0\xff")
    base = await DiskFiles((place.root,), place.root).read(place.path)
    assert isinstance(base, FileBytes)
    await settled(place.window)
    with pytest.raises(EditRefused):
        await place.files.delete(place.path, base=base)
    assert place.path.read_bytes() == b"\0\xff"


async def test_what_may_only_be_read_is_neither_deleted_nor_moved(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    outputs = place.root.parent / "outputs"
    outputs.mkdir()
    log = outputs / "bash.log"
    log.write_text("long")
    files = OverlayFiles(DiskFiles((place.root,), place.root, read_roots=(outputs,)))
    files.attach(place.window.editor)
    place.window.desk.open_file(log)
    await settled(place.window)
    base = await files.read(log)
    with pytest.raises(PathRefused):
        await files.delete(log, base=base)
    with pytest.raises(PathRefused):
        await files.move(log, place.root / "log")
    assert log.read_text() == "long"
    assert place.window.edits_asked() == []


async def test_a_file_that_was_closed_meanwhile_is_deleted_on_the_disk(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.close(place.uri)
    await closed(place)
    await place.files.delete(place.path, base=base)
    assert not place.path.exists()
