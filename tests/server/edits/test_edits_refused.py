"""Edits that do not land: whatever the editor claims, the model is told what its text has."""

from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    StaleText,
)
from agent_core.workspace import WriteResult
from tests.support.clients.editors import NEW_TEXT, OLD, Place, Window, hash_of, settled
from tests.support.lsp.lsp_behaviours import (
    Held,
    Honest,
    NeverAnswers,
    PartlyApplies,
    Refuses,
    SaysAppliedButDidNothing,
)
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json


class Says:
    """Does nothing and gives this answer."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        reply(self._answer)


async def test_applied_without_a_change_is_not_believed(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=SaysAppliedButDidNothing()))
    told = await place.refusal(StaleText)
    assert "said it applied the edit" in told
    assert "did not change" in told
    assert place.text == OLD


@pytest.mark.parametrize("reason", ["the user said no", None])
async def test_a_refusal_is_told_with_its_reason(tmp_path: Path, reason: str | None) -> None:
    place = Place.make(tmp_path, Window(edits=Refuses(reason=reason)))
    told = await place.refusal(EditRefused)
    assert (reason or "it gave no reason") in told
    assert place.text == OLD


@pytest.mark.parametrize("claims", ["applied", "failed"])
async def test_a_part_that_stays_one_is_named(tmp_path: Path, claims) -> None:
    lines = "".join(f"{number}\n" for number in range(10))
    window = Window(edits=PartlyApplies(edits=1, claims=claims))
    place = Place.make(tmp_path, window, text=lines)
    wanted = "".join(f"{number}{'' if number % 2 else '!'}\n" for number in range(10))
    told = await place.refusal(EditUnverified, wanted)
    assert "there: line 1, line 3, line 5; missing: line 7, line 9" in told
    assert place.text == "0!\n1\n2!\n3\n4!\n5\n6\n7\n8\n9\n"


async def test_an_edit_that_got_lost_freezes_the_document_until_it_is_read(tmp_path: Path) -> None:
    silent = NeverAnswers()
    place = Place.make(tmp_path, Window(edits=silent))
    base = await place.read()
    with pytest.raises(EditUnverified, match=r"did not answer within 0\.3 s"):
        _ = await place.write(base=base)
    place.window.edits = Honest()
    with pytest.raises(EditUnverified, match="not verified and may still come"):
        _ = await place.write(base=base)
    assert len(place.window.edits_asked()) == 1
    assert (await place.write(base=await place.read())).sha256 == hash_of(NEW_TEXT)


async def test_a_change_of_the_user_also_ends_the_freeze(tmp_path: Path) -> None:
    place = Place.make(tmp_path, Window(edits=NeverAnswers()))
    base = await place.read()
    with pytest.raises(EditUnverified):
        _ = await place.write(base=base)
    place.window.desk.change(place.uri, "typed\n")
    await settled(place.window)
    with pytest.raises(StaleText):
        _ = await place.write(base=base)


async def test_a_document_that_is_closed_meanwhile_is_unverified(tmp_path: Path) -> None:
    def closes(editor: Desk, params: Json, reply: Reply) -> None:
        assert params
        editor.close(place.uri)
        reply({"applied": True})

    place = Place.make(tmp_path, Window(edits=closes))
    assert "was closed in the editor" in await place.refusal(EditUnverified)


async def test_garbage_for_an_answer_is_no_success(tmp_path: Path) -> None:
    for answer in (None, [], "yes", {"applied": "true"}, {"applied": 1, "failureReason": 7}):
        (tmp_path / str(answer)).mkdir()
        window = Window(edits=Says(answer))
        place = Place.make(tmp_path / str(answer), window)
        assert "refused the edit" in await place.refusal(EditRefused)


async def test_a_cancelled_write_still_learns_what_came_of_it(tmp_path: Path) -> None:
    held = Held()
    place = Place.make(tmp_path, Window(edits=held))
    base = await place.read()
    got: list[WriteResult] = []

    async def write() -> None:
        got.append(await place.files.write(place.path, NEW_TEXT, base=base))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        with anyio.fail_after(5):
            while not held.waiting:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        held.release()
    assert [one.sha256 for one in got] == [hash_of(NEW_TEXT)]
    assert place.text == NEW_TEXT
