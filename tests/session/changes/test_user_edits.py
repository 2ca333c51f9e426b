"""What a user made of an edit is told to everybody at once and to the model with the next prompt; it is kept until then."""

from pathlib import Path

import pytest

from agent_core.events import DocumentChange, EditApplied, EditSaved, EditUndone, Event
from agent_core.kernel import RunId, ToolCallId
from agent_core.session.changes.detection import UserEdit, UserEditKind
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.workspace.files.proxy import EditOrigin
from tests.support.session.scripted_model import ScriptedModel, say
from tests.support.session.sessions import bench

PATH = Path("/project/a.py")
ORIGIN = EditOrigin(edit="e", run=RunId("r"), call=ToolCallId("c"))


def edit(fate: UserEditKind) -> UserEdit:
    return UserEdit(
        fate=fate, path=PATH, origin=ORIGIN, sha256="0", version=3, is_saved=fate == "saved"
    )


@pytest.mark.parametrize(
    ("fate", "kind", "words"),
    [
        ("undone", EditUndone, "The user undid your edit of /project/a.py"),
        ("redone", EditApplied, "The user brought your edit of /project/a.py back"),
        ("saved", EditSaved, None),
    ],
)
async def test_it_is_told_once_with_the_next_prompt(
    fate: UserEditKind, kind: type[EditUndone | EditApplied | EditSaved], words: str | None
) -> None:
    async with bench(ScriptedModel([say("one"), say("two")])) as session:
        await session.session.info.edits.take(edit(fate))
        (event,) = [one for one in session.seen() if isinstance(one, kind)]
        assert (event.run, event.edit, event.call) == (None, "e", "c")
        assert event.documents[0].path == PATH
        for prompt in ("first", "second"):
            await session.session.prompt(prompt)
            await session.idle()
        asked = [str(request.messages) for request in session.model.requests]
        told = [one.count(words) if words else one.count("your edit") for one in asked]
        assert told == ([1, 1] if words else [0, 0])


async def test_it_is_no_event_of_a_run_that_is_over() -> None:
    async with bench(ScriptedModel([say("one")])) as session:
        await session.session.prompt("go")
        await session.idle()
        await session.session.info.edits.take(edit("undone"))
        events: list[Event] = session.seen()
        assert isinstance(events[-1], EditUndone)
        assert events[-1].run is None
        assert events[-1].documents == (
            DocumentChange(path=PATH, status="undone", version=3, sha256="0"),
        )


async def test_what_waits_for_the_next_prompt_is_in_the_file() -> None:
    store = MemoryStore()
    async with bench(ScriptedModel([say("one")]), store=store) as session:
        await session.session.prompt("go")
        await session.idle()
        await session.session.info.edits.take(edit("undone"))
        kept = [one for one in session.session.info.entries if "undid" in str(one)]
        assert len(kept) == 1
