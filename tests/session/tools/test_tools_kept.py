"""The active tools of a session are those of its branch: after a move, in a copy, and when it is opened again."""

from collections.abc import Sequence
from typing import Any

from agent_core.events import Notice, SessionConfigured
from agent_core.kernel import EntryId, SessionId
from agent_core.session.runs.recovered_state import tools_of
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import AnyEntry, CustomEntry
from tests.support.session.entries import AT_MS, chain, user
from tests.support.session.sessions import Bench, bench
from tests.support.session.trees import node, talk, talked
from tests.support.workspace.tools import echo

THREE = [echo("one"), echo("two"), echo("three")]


def tools(data: Any) -> CustomEntry:
    return CustomEntry(
        id=EntryId("t"), parent=None, at_ms=AT_MS, custom_type="tiller.tools", data=data
    )


async def test_a_choice_is_written_once_and_only_when_it_changes_something() -> None:
    async with bench(talk(), tools=THREE) as b:
        await b.session.tools.activate(["two", "three"])
        await b.session.tools.activate(["three", "two"])
        assert _written(b.session.info.entries) == [["two", "three"]]


async def test_a_move_brings_the_tools_of_the_branch_along() -> None:
    async with bench(talk(), tools=THREE) as b:
        await talked(b, "u1")
        await b.session.tools.activate("one")
        await talked(b, "u2")
        await b.session.tools.activate("two")
        await talked(b, "u3")
        b.session.tools.register(echo("late"))
        for place, active in (("a2", ("one",)), ("a3", ("two",)), ("a1", _all())):
            await b.session.tree.navigate(node(b, place))
            assert b.session.tools.active == active
            assert _told(b)[-1] == active
        await b.session.prompt("u4")
        await b.idle()
        assert [tool.name for tool in b.model.requests[-1].tools] == list(_all())


async def test_a_tool_that_is_gone_is_named_when_its_branch_is_gone_to() -> None:
    store = MemoryStore()
    async with bench(talk(), tools=THREE, store=store) as b:
        await talked(b, "u1")
        await b.session.tools.activate(["one", "three"])
        await talked(b, "u2")
    opened = await store.open(SessionId("s-1"))
    async with bench(talk(), tools=THREE[:2], store=store, opened=opened) as b:
        await b.session.tree.navigate(node(b, "a1"))
        assert b.session.tools.active == ("one", "two")
        await b.session.tree.navigate(node(b, "a2"))
        assert b.session.tools.active == ("one",)
        (told,) = [e.text for e in b.seen() if isinstance(e, Notice)]
        assert told == "this branch was with tools that are not there now: three"


async def test_a_copy_has_the_tools_of_the_branch() -> None:
    store = MemoryStore()
    async with bench(talk(), tools=THREE, store=store) as b:
        await talked(b, "u1")
        await b.session.tools.activate("one")
        await talked(b, "u2")
        copy = (await b.session.tree.clone()).session
    assert copy is not None
    assert tools_of((await store.open(copy)).entries) == ("one",)


def test_what_others_wrote_there_is_no_choice() -> None:
    for data in (None, 7, {}, {"tools": "one"}, {"tools": None}):
        assert tools_of([*chain(user("hi")), tools(data)]) is None
    assert tools_of([tools({"tools": ["one", 2, "two"]})]) == ("one", "two")
    assert tools_of([]) is None


def _all() -> tuple[str, ...]:
    return ("one", "two", "three", "late")


def _written(entries: Sequence[AnyEntry]) -> list[Any]:
    kept = [one for one in entries if isinstance(one, CustomEntry)]
    return [one.data["tools"] for one in kept if isinstance(one.data, dict)]


def _told(b: Bench) -> list[tuple[str, ...]]:
    return [event.config.tools for event in b.seen() if isinstance(event, SessionConfigured)]
