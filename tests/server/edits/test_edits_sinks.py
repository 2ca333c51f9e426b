"""Where an edit goes, what it was made for, and what of it is saved."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    EditRefused,
    StaleText,
)
from tests.support.clients.editors import FAST, NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_behaviours import Honest
from tests.support.lsp.lsp_profiles import MINIMAL, NEOVIM_0_11, PANEL
from tiller_server.lsp.edits.document_writer import DIRTY, NEWER_ON_DISK, UNSAVED
from tiller_server.lsp.edits.write_report import TYPED


async def test_a_text_that_changed_since_it_was_read_is_kept(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.change(place.uri, "typed\n")
    await settled(place.window)
    with pytest.raises(StaleText, match="changed in the editor since it was read"):
        _ = await place.write(base=base)
    assert (place.text, place.window.asked) == ("typed\n", [])


async def test_what_was_read_from_the_disk_is_good_for_the_same_text_in_an_editor(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    from_disk = replace(base, source="disk", version=None)
    assert (await place.write(base=from_disk)).source == "buffer"


async def test_what_was_read_from_an_editor_is_good_for_the_same_text_on_the_disk(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(), text="\ufeffone\n")
    base = replace(await place.read(), text="one\n", sha256=hash_of("one\n"))
    place.files.detach(place.window.editor)
    assert (await place.write("two\n", base=base)).source == "disk"
    assert place.disk == "\ufefftwo\n"
    with pytest.raises(StaleText):
        _ = await place.write("three\n", base=base)


async def test_a_new_file_cannot_replace_an_open_document(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(), typed="typed\n")
    await settled(place.window)
    with pytest.raises(StaleText, match="open in the editor"):
        _ = await place.files.write(place.path, "x", base=None)


async def test_of_two_writers_with_one_base_one_wins(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    ended: list[str] = []

    async def write(text: str) -> None:
        try:
            _ = await place.write(text, base=base)
        except StaleText:
            ended.append("stale")
        else:
            ended.append(text)

    async with anyio.create_task_group() as group:
        for text in ("a\n", "b\n", "c\n"):
            group.start_soon(write, text)
    assert sorted(ended)[1:] == ["stale", "stale"]
    assert place.text == min(ended)
    assert len(place.window.edits_asked()) == 1


async def test_the_edit_waits_for_a_pause_in_the_typing_but_not_for_ever(tmp_path: Path) -> None:
    patient = replace(FAST, pause_s=30.0, patience_s=0.7)
    place = Place.make(tmp_path, Window(timing=patient), typed="typed\n")
    base = await place.read()
    started = anyio.current_time()
    _ = await place.write(base=base)
    assert 0.5 < anyio.current_time() - started < 5
    # Our own edit is no typing.
    with anyio.fail_after(0.6):
        _ = await place.write("again\n")


async def test_what_a_formatter_does_on_saving_is_told(tmp_path: Path) -> None:
    window = Window(PANEL, edits=Honest())
    place = Place.make(tmp_path, window)
    save = window.handlers["agent/documents/save"]

    def formats(params, reply) -> None:
        window.desk.change(place.uri, f"# formatted\n{place.text}")
        params = {"items": [{"uri": place.uri}]}
        save(params, reply)

    window.handlers["agent/documents/save"] = formats
    written = await place.write()
    told = f"{TYPED}\n1: # formatted"
    assert (written.saved, written.changed_by_user, written.note) == (True, True, told)
    assert written.sha256 == hash_of(place.disk) == hash_of(f"# formatted\n{NEW_TEXT}")


async def test_an_edit_is_saved_where_the_editor_can(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL))
    written = await place.write()
    assert (written.saved, written.note, written.source) == (True, None, "buffer")
    assert place.disk == NEW_TEXT
    assert (await place.write("again\n")).saved is True


async def test_what_the_user_has_not_saved_is_not_saved_for_them(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(PANEL), typed=f"typed\n{OLD}")
    written = await place.write(f"typed\n{NEW_TEXT}")
    assert (written.saved, written.note) == (False, DIRTY)
    assert [method for method, _ in place.window.asked] == ["agent/edit/apply"]
    assert place.disk == OLD


async def test_a_save_that_did_not_happen_is_told(tmp_path: Path) -> None:
    window = Window(PANEL, edits=Honest())
    place = Place.make(tmp_path, window)
    uri = place.uri
    window.handlers["agent/documents/save"] = lambda _, reply: reply(
        {"results": [{"uri": uri, "saved": False, "why": "read-only"}]}
    )
    written = await place.write()
    assert (written.saved, written.note) == (False, f"{UNSAVED} It could not be saved: read-only.")
    window.handlers["agent/documents/save"] = lambda _, reply: reply(
        {"results": [{"uri": uri, "saved": True}]}
    )
    assert (await place.write("again\n")).saved is False


async def test_an_editor_that_takes_no_edits_has_them_on_the_disk_when_nothing_is_unsaved(
    tmp_path: Path,
) -> None:
    place = Place.make(tmp_path, Window(MINIMAL))
    written = await place.write()
    assert (written.source, written.saved, written.note) == ("disk", True, NEWER_ON_DISK)
    assert (place.disk, place.text) == (NEW_TEXT, OLD)
    again = await place.read()
    assert (again.text, again.source) == (NEW_TEXT, "disk")


async def test_unsaved_text_of_an_editor_that_takes_no_edits_is_left_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(MINIMAL), typed="typed\n")
    assert "unsaved edits" in await place.refusal(EditRefused)
    assert (place.disk, place.text) == (OLD, "typed\n")


async def test_a_user_may_prefer_the_disk_for_what_is_saved(tmp_path: Path) -> None:
    window = Window(NEOVIM_0_11, options={"edit": {"openClean": "disk"}})
    place = Place.make(tmp_path, window)
    assert (await place.write()).source == "disk"
    assert place.window.asked == []


async def test_an_editor_that_does_not_look_at_version_zero_is_given_another(
    tmp_path: Path,
) -> None:
    window = Window(NEOVIM_0_11)
    place = Place.make(tmp_path, window)
    window.desk.close(place.uri)
    window.desk.open_file(place.path, version=0)
    await place.write()
    (asked,) = window.edits_asked()
    (change,) = asked["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 1
    assert place.text == NEW_TEXT
