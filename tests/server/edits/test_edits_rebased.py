"""Edits of text that its user has gone on with: merged, tried again, mended, and told with what is there now."""

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    EditConflicted,
    EditRefused,
    EditUnverified,
    StaleText,
    WorkspaceError,
)
from agent_core.workspace import WriteResult
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_behaviours import (
    EditBehaviour,
    Held,
    Honest,
    PartlyApplies,
    Refuses,
    RefusesStaleVersions,
)
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Profile
from tiller_server.lsp.edits.document_writer import DIRTY
from tiller_server.lsp.edits.write_report import TYPED

PROFILES = pytest.mark.parametrize(
    "profile", [VSCODE, HELIX, EGLOT, NEOVIM_0_11], ids=lambda one: one.name
)


class TypesFirst:
    """A user who is ahead of each edit for a while: their text is there before the edit is."""

    def __init__(
        self, place: Callable[[], Place], texts: Sequence[str], then: EditBehaviour
    ) -> None:
        self._place = place
        self._texts = list(texts)
        self._then = then

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        if self._texts:
            place = self._place()
            place.window.desk.change(place.uri, self._texts.pop(0))
        self._then(editor, params, reply)


def typing(
    tmp_path: Path, texts: Sequence[str], then: EditBehaviour, profile: Profile = VSCODE
) -> Place:
    place = Place.make(tmp_path, Window(profile, edits=TypesFirst(lambda: place, texts, then)))
    return place


@PROFILES
async def test_what_the_user_typed_since_it_was_read_is_kept(
    tmp_path: Path, profile: Profile
) -> None:
    place = Place.make(tmp_path, Window(profile))
    base = await place.read()
    place.window.desk.change(place.uri, f"typed\n{OLD}")
    await settled(place.window)
    assert await place.write(base=base) == WriteResult(
        path=place.path,
        sha256=hash_of(f"typed\n{NEW_TEXT}"),
        source="buffer",
        saved=False,
        created=False,
        version=3,
        changed_by_user=True,
        note=f"{DIRTY} {TYPED}\n1: typed",
        before=f"typed\n{OLD}",
        edited=f"typed\n{NEW_TEXT}",
        text=f"typed\n{NEW_TEXT}",
    )
    assert place.text == f"typed\n{NEW_TEXT}"


@PROFILES
async def test_an_edit_that_the_user_was_ahead_of_is_made_again(
    tmp_path: Path, profile: Profile
) -> None:
    held = Held(profile.edits())
    place = Place.make(tmp_path, Window(profile, edits=held))
    base = await place.read()
    got: list[WriteResult] = []

    async def write() -> None:
        got.append(await place.write(base=base))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        with anyio.fail_after(5):
            while not held.waiting:
                await anyio.lowlevel.checkpoint()
        place.window.desk.change(place.uri, f"typed\n{OLD}")
        place.window.edits = profile.edits()
        held.release()
    assert place.text == f"typed\n{NEW_TEXT}"
    assert (got[0].text, got[0].before) == (place.text, f"typed\n{OLD}")


async def test_three_times_the_user_is_ahead_and_then_the_text_is_theirs(tmp_path: Path) -> None:
    texts = [f"{'typed ' * count}\n{OLD}" for count in range(1, 4)]
    place = typing(tmp_path, texts, RefusesStaleVersions(reason=None))
    told = await place.refusal(StaleText)
    assert "each time it was about to be edited: nothing of the edit is in it" in told
    assert place.text == texts[-1]
    assert len(place.window.edits_asked()) == 3


async def test_lines_that_both_changed_are_told_as_they_are_now(tmp_path: Path) -> None:
    place = typing(
        tmp_path, ["one\nzwei\ndrei\nthree\nfour\nfive\n"], RefusesStaleVersions(reason=None)
    )
    told = await place.refusal(EditConflicted)
    assert told == (
        f"{place.path} changed in the editor since it was read, in the same lines as the edit: nothing was written. "
        "These lines are now:\n2: zwei\n3: drei"
    )
    assert place.text == "one\nzwei\ndrei\nthree\nfour\nfive\n"


async def test_lines_that_the_user_deleted_are_told_as_deleted(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    place.window.desk.change(place.uri, "one\nthree\nfour\nfive\n")
    await settled(place.window)
    with pytest.raises(EditConflicted, match=r"\(after line 1 a line was deleted\)"):
        _ = await place.write(base=base)
    assert place.window.edits_asked() == []


async def test_who_said_no_is_not_asked_again(tmp_path: Path) -> None:
    place = typing(tmp_path, [f"typed\n{OLD}"], Refuses(reason="the user said no"))
    assert "the user said no. It is not in the text" in await place.refusal(EditRefused)
    assert len(place.window.edits_asked()) == 1


@pytest.mark.parametrize("claims", ["applied", "failed"])
async def test_what_is_missing_of_an_edit_is_brought_by_the_next_try(
    tmp_path: Path, claims
) -> None:
    place = Place.make(tmp_path, Window(edits=PartlyApplies(edits=1, claims=claims)))
    written = await place.write()
    assert (place.text, written.sha256) == (NEW_TEXT, hash_of(NEW_TEXT))
    assert (written.changed_by_user, written.text) == (False, None)
    assert [
        len(one["edit"]["documentChanges"][0]["edits"]) for one in place.window.edits_asked()
    ] == [
        2,
        1,
    ]


async def test_an_edit_that_landed_in_the_wrong_place_is_mended(tmp_path: Path) -> None:
    place = typing(tmp_path, [f"typed\n{OLD}"], Honest())
    written = await place.write("one\nthree\nfour\nfive\n")
    assert place.text == "typed\none\nthree\nfour\nfive\n"
    assert (written.changed_by_user, written.text) == (True, place.text)


async def test_an_edit_that_deleted_what_the_user_typed_is_taken_back(tmp_path: Path) -> None:
    place = typing(tmp_path, ["one\ntwo typed\nthree\nfour\nfive\n"], Honest())
    told = await place.refusal(EditConflicted, "one\nthree\nfour\nfive\n")
    assert told.endswith("These lines are now:\n2: two typed")
    assert place.text == "one\ntwo typed\nthree\nfour\nfive\n"
    assert len(place.window.edits_asked()) == 2


async def test_a_reloaded_document_is_merged_with_as_any_other(tmp_path: Path) -> None:
    def reloads(editor: Desk, params: Json, reply: Reply) -> None:
        editor.close(place.uri)
        _ = editor.open(place.uri, f"pulled\n{OLD}", version=0)
        place.window.edits = Honest()
        reply({"applied": True})

    place = Place.make(tmp_path, Window(NEOVIM_0_11, edits=reloads))
    written = await place.write()
    assert place.text == f"pulled\n{NEW_TEXT}"
    assert written.text == place.text


async def test_a_document_that_is_closed_before_the_next_try_is_written_on_the_disk(
    tmp_path: Path,
) -> None:
    def closes(editor: Desk, params: Json, reply: Reply) -> None:
        editor.change(place.uri, f"typed\n{OLD}")
        reply({"applied": False})
        editor.close(place.uri)

    place = Place.make(tmp_path, Window(edits=closes))
    base = await place.read()
    try:
        written = await place.write(base=base)
    except WorkspaceError as error:
        assert isinstance(error, EditUnverified)  # noqa: PT017 - either is true
        assert place.disk == OLD
    else:
        assert (written.source, place.disk) == ("disk", NEW_TEXT)


async def test_both_of_two_writers_with_one_base_are_in_the_text(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window())
    base = await place.read()
    async with anyio.create_task_group() as group:
        for old, new in (("one", "1"), ("three", "3"), ("five", "5")):
            group.start_soon(lambda text: place.write(text, base=base), OLD.replace(old, new))
    assert place.text == "1\ntwo\n3\nfour\n5\n"
