"""What editors, users and disks do at the wrong moment: nothing is lost by it, and what is told is true."""

import os
import stat
from pathlib import Path

import pytest

from agent_core.kernel.errors import EditRefused, EditUnverified, StaleText, WorkspaceError
from agent_core.workspace import FileText
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_behaviours import Held, Honest
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor, Json
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, VSCODE, Profile

BEYOND = {"line": 99, "character": 99}


class AnswersTwice:
    """Applies an edit once and says so twice, the second time otherwise."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        Honest()(editor, params, reply)
        reply({"applied": False, "failureReason": "no"})


async def test_the_second_answer_to_an_edit_counts_for_nothing(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=AnswersTwice()))
    assert (await place.write()).sha256 == hash_of(NEW_TEXT)
    again = await place.write("again\n")
    assert (again.sha256, place.text) == (hash_of("again\n"), "again\n")


async def test_places_beyond_the_text_are_its_end(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    typed = {"range": {"start": BEYOND, "end": BEYOND}, "newText": "six\n"}
    identifier = {"uri": place.uri, "version": 2}
    place.window.desk.documents[place.uri].text = f"{OLD}six\n"
    place.window.tell_server(
        "textDocument/didChange",
        {
            "textDocument": identifier,
            "contentChanges": [{"range": typed["range"], "text": "six\n"}],
        },
    )
    assert (await place.read()).text == f"{OLD}six\n"


@pytest.mark.parametrize("profile", [VSCODE, NEOVIM_0_11, HELIX], ids=lambda one: one.name)
async def test_mixed_line_ends_stay_as_they_are(tmp_path: Path, profile: Profile) -> None:
    mixed = "one\r\ntwo\nthree\rfour 🦜\r\nfive\n"
    place = Place.make(tmp_path, Window(profile), text=mixed)
    await place.write(mixed.replace("two", "2").replace("four", "4"))
    assert place.text == "one\r\n2\nthree\r4 🦜\r\nfive\n"


async def test_what_the_disk_got_below_unsaved_text_is_not_overwritten(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(VSCODE), typed=f"typed\n{OLD}")
    base = await place.read()
    place.path.write_text("another program\n")
    written = await place.write(f"typed\n{NEW_TEXT}", base=base)
    assert (written.source, written.saved) == ("buffer", False)
    assert (place.text, place.disk) == (f"typed\n{NEW_TEXT}", "another program\n")


async def test_a_document_that_is_reloaded_while_an_edit_is_out_keeps_what_the_disk_has(
    tmp_path: Path,
) -> None:
    held = Held()
    place = Place.make(tmp_path, Window(edits=held))
    base = await place.read()

    def reloads() -> None:
        place.path.write_text("from elsewhere\n")
        place.window.desk.close(place.uri)
        place.window.desk.open_file(place.path, version=0)

    place.window.when_asked = reloads
    with pytest.raises(EditUnverified):
        await place.write(base=base)
    assert (place.text, place.disk) == ("from elsewhere\n", "from elsewhere\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write what is read-only")
async def test_a_read_only_file_is_not_written(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.close(place.uri)
    await settled(place.window)
    place.path.chmod(stat.S_IRUSR)
    with pytest.raises(WorkspaceError):
        await place.write(base=base)
    assert place.disk == OLD


@pytest.mark.parametrize("is_open", [True, False], ids=["open", "closed"])
async def test_a_file_that_became_a_folder_is_told(tmp_path: Path, is_open: bool) -> None:
    place = Place.make(tmp_path, Window(VSCODE))
    base = await place.read()
    if not is_open:
        place.window.desk.close(place.uri)
    place.path.unlink()
    place.path.mkdir()
    (place.path / "inside").write_text("kept\n")
    with pytest.raises(WorkspaceError) as caught:
        await place.write(base=base)
    assert str(place.path) in str(caught.value)
    assert (place.path / "inside").read_text() == "kept\n"


async def test_a_file_that_went_away_below_an_open_document_is_in_the_editor_alone(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(VSCODE))
    base = await place.read()
    place.path.unlink()
    written = await place.write(base=base)
    assert (written.source, written.saved, place.text) == ("buffer", False, NEW_TEXT)
    assert not place.path.exists()


async def test_an_editor_that_leaves_while_an_edit_is_out_leaves_it_unknown(tmp_path: Path) -> None:
    held = Held()
    place = Place.make(tmp_path, Window(edits=held))
    base = await place.read()
    place.window.when_asked = lambda: place.files.detach(place.window.editor)
    with pytest.raises((EditUnverified, StaleText, EditRefused)):
        await place.write(base=base)
    assert place.disk == OLD
    read = await place.files.read(place.path)
    assert isinstance(read, FileText)
    assert read.source == "disk"
