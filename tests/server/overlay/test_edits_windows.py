"""One file in two windows: whose text counts, who gets the edit, and when nobody does."""

from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import DocumentContention, EditUnverified, WorkspaceError
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, settled
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json
from tests.support.lsp.lsp_profiles import NEOVIM_0_11
from tiller_server.lsp.overlay.workspace_files import OverlayFiles


class Two:
    """A place with a second window on the same file."""

    def __init__(self, place: Place, other: Window) -> None:
        self.place = place
        self.other = other
        self.told: list[Path] = []
        place.files.contended = lambda path, _: self.told.append(path)

    @classmethod
    async def make(cls, tmp_path: Path, *, typed: str = "", typed_there: str = "") -> "Two":
        place = Place.make(tmp_path, Window(), typed=typed)
        other = Window(NEOVIM_0_11)
        other.desk.open_file(place.path)
        if typed_there:
            other.desk.change(place.uri, typed_there)
        place.files.attach(other.editor)
        await settled(place.window)
        await settled(other)
        return cls(place, other)


async def test_of_two_clean_windows_the_one_looked_at_last_gets_the_edit(tmp_path: Path) -> None:
    two = await Two.make(tmp_path)
    place, other = two.place, two.other
    place.window.mirror.focused(place.uri)
    _ = await place.write(NEW_TEXT)
    assert (len(place.window.edits_asked()), other.edits_asked()) == (1, [])
    assert other.desk.documents[place.uri].text == OLD


async def test_looking_at_a_document_is_no_change_of_it(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    await settled(place.window)
    before = place.window.mirror.get(place.uri)
    place.window.mirror.focused(place.uri)
    place.window.mirror.focused("file:///not/open")
    after = place.window.mirror.get(place.uri)
    assert before is not None
    assert after is not None
    assert (after.revision, after.changed_at) == (before.revision, before.changed_at)


@pytest.mark.parametrize("there", ["typed there\n", "typed here\n"], ids=["other", "the same"])
async def test_unsaved_text_in_both_windows_keeps_every_edit_away(
    tmp_path: Path, there: str
) -> None:
    two = await Two.make(tmp_path, typed="typed here\n", typed_there=there)
    place = two.place
    told = await place.refusal(DocumentContention)
    assert "DocumentContention" in told
    for name in ("Visual Studio Code", "Neovim"):
        assert name in told
    assert two.told == [place.path]
    assert (place.text, two.other.desk.documents[place.uri].text) == ("typed here\n", there)
    assert place.disk == OLD
    base = await place.read()
    with pytest.raises(DocumentContention):
        await place.files.delete(place.path, base=base)
    with pytest.raises(WorkspaceError):
        await place.files.move(place.path, place.path.with_name("b.py"))
    assert place.disk == OLD


async def test_once_one_window_gives_its_text_up_the_other_gets_the_edit(tmp_path: Path) -> None:
    two = await Two.make(tmp_path, typed="typed here\n", typed_there="typed there\n")
    _ = await two.place.refusal(DocumentContention)
    two.other.desk.close(two.place.uri)
    await settled(two.other)
    with anyio.fail_after(5):
        while two.other.mirror.get(two.place.uri) is not None:
            await anyio.lowlevel.checkpoint()
    _ = await two.place.write(NEW_TEXT)
    assert two.place.text == NEW_TEXT


class Dies:
    """An editor that is gone before it has answered."""

    def __init__(self, files: OverlayFiles, window: Window) -> None:
        self.files = files
        self.window = window

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        _ = editor, params, reply
        self.files.detach(self.window.editor)


async def test_a_window_that_leaves_in_the_middle_of_an_edit_leaves_the_file_to_the_other(
    tmp_path: Path,
) -> None:
    two = await Two.make(tmp_path)
    place, other = two.place, two.other
    place.window.mirror.focused(place.uri)
    place.window.edits = Dies(place.files, place.window)
    told = await place.refusal(EditUnverified)
    assert "did not answer" in told
    assert place.disk == OLD
    read = await place.files.read(place.path)
    written = await place.files.write(place.path, NEW_TEXT, base=read)  # pyright: ignore[reportArgumentType] - text
    assert written.path == place.path
    assert other.desk.documents[place.uri].text == NEW_TEXT
    assert len(other.edits_asked()) == 1
