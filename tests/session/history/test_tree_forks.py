"""New sessions made of branches, and what the tree refuses."""

from typing import Any

import anyio
import pytest

from agent_core.events import (
    Notice,
)
from agent_core.kernel import EntryId
from agent_core.kernel.errors import (
    EntryUnknown,
    ForkRefused,
    SessionBusy,
    SessionClosed,
)
from agent_core.session.history.branches import Forked
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import LabelEntry
from tests.support.session.scripted_model import (
    Gate,
    ScriptedModel,
    call,
    say,
)
from tests.support.session.sessions import bench
from tests.support.session.trees import SUMMARY, context, node, reopened, shown, talk, talked
from tests.support.workspace.tools import echo

MISSING = EntryId("feedface")


# --- new sessions


async def test_a_fork_holds_everything_before_the_users_words() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b)
        before = b.session.info.entries
        forked = await b.session.tree.fork(node(b, "u3"))
        assert (forked.text, forked.location) == ("u3", None)
        assert b.session.info.entries == before
    opened = await reopened(store, forked.session)
    assert opened.log.header.parent_session == "s-1"
    async with bench(ScriptedModel([say("other")]), store=store, opened=opened) as b:
        assert context(b) == ["u1", "a1", "u2", "a2"]
        await talked(b, "u3 differently")
        assert context(b)[-2:] == ["u3 differently", "other"]


async def test_a_fork_at_the_first_words_has_nothing_to_keep() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b, "u1")
        assert await b.session.tree.fork(node(b, "u1")) == Forked(
            session=None, text="u1", location=None
        )
        assert [one.session for one in await store.list()] == ["s-1"]


async def test_a_clone_holds_the_present_branch_alone_with_its_labels() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b, "u1", "u2")
        await b.session.tree.label(node(b, "a1"), "start")
        await b.session.tree.label(node(b, "a2"), "elsewhere")
        await b.session.tree.navigate(node(b, "a1"))
        await talked(b, "u2b")
        cloned = await b.session.tree.clone()
        assert cloned.text == ""
    async with bench(
        ScriptedModel(), store=store, opened=await reopened(store, cloned.session)
    ) as b:
        assert shown(b.session.tree.nodes()) == {"u1": None, "a1": "u1", "u2b": "a1", "a3": "u2b"}
        assert {one.preview: one.label for one in b.session.tree.nodes() if one.label} == {
            "a1": "start"
        }
        assert isinstance(b.session.info.entries[-1], LabelEntry)
        assert not any(isinstance(e, Notice) for e in b.seen())


async def test_words_that_wait_belong_to_the_session_that_took_them() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b, "u1")
        await b.session.steer("later", if_idle="hold")
        cloned = await b.session.tree.clone()
    async with bench(
        ScriptedModel(), store=store, opened=await reopened(store, cloned.session)
    ) as b:
        assert b.session.info.snapshot().queue == ()


async def test_a_fork_inside_a_run_is_no_interrupted_run() -> None:
    store, gate = MemoryStore(), Gate()
    scripted = ScriptedModel([(gate, *say("a1")), say("a2")])
    async with bench(scripted, store=store) as b:
        await b.session.prompt("u1")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.steer("u2")
        gate.release()
        await b.idle()
        forked = await b.session.tree.fork(node(b, "u2"))
        assert forked.text == "u2"
    async with bench(
        ScriptedModel(), store=store, opened=await reopened(store, forked.session)
    ) as b:
        assert context(b) == ["u1", "a1"]
        assert not any(isinstance(e, Notice) for e in b.seen())


# --- what is refused


@pytest.mark.parametrize("what", ["fork", "navigate", "label"])
async def test_an_entry_that_does_not_exist_is_named(what: str) -> None:
    async with bench(talk()) as b:
        await talked(b, "u1")
        before = b.session.info.entries
        calls: dict[str, Any] = {
            "fork": lambda: b.session.tree.fork(MISSING),
            "navigate": lambda: b.session.tree.navigate(MISSING, summarize=True),
            "label": lambda: b.session.tree.label(MISSING, "x"),
        }
        with pytest.raises(EntryUnknown, match="no entry 'feedface'; look at its tree"):
            await calls[what]()
        assert b.session.info.entries == before


@pytest.mark.parametrize(
    ("role", "called"),
    [
        ("assistant", "an answer of the model"),
        ("toolResult", "the result of a tool"),
        (None, "a message of a program"),
    ],
    ids=["answer", "tool-result", "program"],
)
async def test_only_words_of_the_user_can_be_forked(role: str | None, called: str) -> None:
    scripted = ScriptedModel([call("echo", {"text": "x"}), say("done")])
    store = MemoryStore()
    async with bench(scripted, store=store, tools=(echo("echo"),)) as b:
        await talked(b, "u1")
        await b.session.add("2 faults", custom_type="lint")
        before = b.session.info.entries
        target = next(one.entry for one in b.session.tree.nodes() if one.role == role)
        with pytest.raises(ForkRefused, match=called):
            await b.session.tree.fork(target)
        assert b.session.info.entries == before
        assert len(await store.list()) == 1


async def test_a_session_in_which_nothing_was_said_cannot_be_cloned() -> None:
    async with bench(talk()) as b:
        with pytest.raises(ForkRefused, match="nothing to clone"):
            await b.session.tree.clone()


@pytest.mark.parametrize("what", ["fork", "clone", "navigate"])
async def test_while_a_run_goes_on_the_tree_stays_as_it_is(what: str) -> None:
    gate = Gate()
    async with bench(ScriptedModel([say("a1"), (gate, *say("a2"))])) as b:
        await talked(b, "u1")
        await b.session.prompt("u2")
        with anyio.fail_after(5):
            await gate.reached.wait()
        calls: dict[str, Any] = {
            "fork": lambda: b.session.tree.fork(node(b, "u1")),
            "clone": b.session.tree.clone,
            "navigate": lambda: b.session.tree.navigate(node(b, "u1")),
        }
        before = b.session.info.entries
        with pytest.raises(SessionBusy, match="a run is going on"):
            await calls[what]()
        assert b.session.info.entries == before
        await b.session.tree.label(node(b, "a1"), "labels may be given at any time")
        gate.release()
        await b.idle()
        assert context(b) == ["u1", "a1", "u2", "a2"]


async def test_while_one_move_goes_on_there_is_no_other() -> None:
    gate = Gate()
    async with bench(talk((gate, *SUMMARY))) as b:
        await talked(b)
        async with anyio.create_task_group() as group:

            async def move() -> None:
                await b.session.tree.navigate(node(b, "a1"), summarize=True)

            group.start_soon(move)
            with anyio.fail_after(5):
                await gate.reached.wait()
            busy = "a move to another branch is going on"
            with pytest.raises(SessionBusy, match=busy):
                await b.session.tree.navigate(node(b, "a2"))
            with pytest.raises(SessionBusy, match=busy):
                await b.session.prompt("x", delivery="reject")
            with pytest.raises(SessionBusy, match=busy):
                await b.session.compact()
            gate.release()
        assert b.session.tree.leaf != node(b, "a1")


async def test_a_closed_session_says_so() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1")
        answer = node(b, "a1")
        await b.session.close()
        with pytest.raises(SessionClosed):
            await b.session.tree.navigate(answer)
        with pytest.raises(SessionClosed):
            await b.session.tree.rename("x")
