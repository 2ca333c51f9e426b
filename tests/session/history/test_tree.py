"""The tree of a session: moving between branches, and what comes along."""

from dataclasses import replace

import pytest

from agent_core.events import (
    EntryLabelled,
    LeafMoved,
    ModelChanged,
    Notice,
    SessionTitle,
    SessionUsage,
)
from agent_core.messages import Text, Usage
from agent_core.session.history.branches import Navigated
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.session.scripted_model import (
    SCRIPTED_FACTS,
    ScriptedModel,
    call,
    say,
)
from tests.support.session.sessions import OneModel, bench
from tests.support.session.trees import SUMMARY, context, node, shown, talk, talked
from tests.support.workspace.tools import echo

# --- the picture


async def test_the_tree_shows_what_was_said_in_the_order_of_the_file() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1", "u2")
        nodes = b.session.tree.nodes()
        assert [(one.kind, one.role, one.preview) for one in nodes] == [
            ("message", "user", "u1"),
            ("message", "assistant", "a1"),
            ("message", "user", "u2"),
            ("message", "assistant", "a2"),
        ]
        assert shown(nodes) == {"u1": None, "a1": "u1", "u2": "a1", "a2": "u2"}
        assert b.session.tree.leaf == node(b, "a2")


async def test_the_tree_of_a_session_in_which_nothing_was_said_is_empty() -> None:
    async with bench(talk()) as b:
        assert (b.session.tree.nodes(), b.session.tree.leaf, b.session.tree.title) == (
            (),
            None,
            None,
        )


async def test_a_second_branch_stands_beside_the_first() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1", "u2")
        await b.session.tree.navigate(node(b, "a1"))
        await talked(b, "u2b")
        assert shown(b.session.tree.nodes()) == {
            "u1": None,
            "a1": "u1",
            "u2": "a1",
            "a2": "u2",
            "u2b": "a1",
            "a3": "u2b",
        }
        assert context(b) == ["u1", "a1", "u2b", "a3"]


# --- moving


async def test_moving_to_an_answer_goes_on_after_it() -> None:
    async with bench(talk()) as b:
        await talked(b)
        before = b.session.tree.leaf
        moved = await b.session.tree.navigate(node(b, "a1"))
        assert moved == Navigated(leaf=node(b, "a1"), editor_text=None, summary=None)
        assert b.session.tree.leaf == node(b, "a1")
        assert context(b) == ["u1", "a1"]
        assert [e for e in b.seen() if isinstance(e, LeafMoved)] == [
            LeafMoved(leaf=node(b, "a1"), from_=before)
        ]


async def test_moving_to_the_users_words_goes_on_before_them_and_gives_them_back() -> None:
    async with bench(talk()) as b:
        await talked(b)
        moved = await b.session.tree.navigate(node(b, "u2"))
        assert moved == Navigated(leaf=node(b, "a1"), editor_text="u2", summary=None)
        assert context(b) == ["u1", "a1"]


async def test_moving_to_the_first_words_begins_anew() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1", "u2")
        moved = await b.session.tree.navigate(node(b, "u1"))
        assert moved == Navigated(leaf=None, editor_text="u1", summary=None)
        assert context(b) == []
        await talked(b, "another start")
        assert shown(b.session.tree.nodes())["another start"] is None
        assert context(b) == ["another start", "a3"]


async def test_moving_to_a_programs_words_gives_them_back_too() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1")
        await b.session.add("2 faults", custom_type="lint")
        await talked(b, "u2")
        moved = await b.session.tree.navigate(node(b, "2 faults"))
        assert (moved.editor_text, moved.leaf) == ("2 faults", node(b, "a1"))


async def test_moving_to_where_one_is_does_nothing() -> None:
    async with bench(talk()) as b:
        await talked(b)
        before, leaf = b.session.info.entries, b.session.tree.leaf
        assert leaf is not None
        moved = await b.session.tree.navigate(leaf, summarize=True, label="here")
        assert moved == Navigated(leaf=leaf, editor_text=None, summary=None)
        assert b.session.info.entries == before
        assert not any(isinstance(e, LeafMoved) for e in b.seen())


async def test_asking_for_the_same_words_twice_writes_only_once() -> None:
    async with bench(talk()) as b:
        await talked(b)
        first = await b.session.tree.navigate(node(b, "u2"))
        entries = b.session.info.entries
        assert await b.session.tree.navigate(node(b, "u2")) == first
        assert b.session.info.entries == entries


async def test_one_can_go_back_to_where_one_was() -> None:
    async with bench(talk(say("a4"))) as b:
        await talked(b)
        await b.session.tree.navigate(node(b, "a1"))
        await b.session.tree.navigate(node(b, "a3"))
        await talked(b, "u4")
        assert context(b) == ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"]


async def test_the_place_outlives_the_process() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b)
        await b.session.tree.navigate(node(b, "a1"))
        session, leaf = b.session.id, b.session.tree.leaf
    again = ScriptedModel([say("a2 again")])
    async with bench(again, store=store, opened=await store.open(session)) as b:
        assert b.session.tree.leaf == leaf
        await talked(b, "u2 again")
        assert context(b) == ["u1", "a1", "u2 again", "a2 again"]


async def test_the_other_branch_is_not_taken_for_an_interrupted_run() -> None:
    store = MemoryStore()
    scripted = ScriptedModel([call("echo", {"text": "x"}), say("done")])
    async with bench(scripted, store=store, tools=(echo("echo"),)) as b:
        await talked(b, "u1")
        await b.session.tree.navigate(node(b, "echo"))
        session, entries = b.session.id, len(b.session.info.entries)
    async with bench(ScriptedModel(), store=store, opened=await store.open(session)) as b:
        assert not any(isinstance(e, Notice) for e in b.seen())
        assert len(b.session.info.entries) == entries
        assert b.results() == []


# --- what comes along


async def test_the_branchs_model_and_level_are_in_force_again() -> None:
    second = ScriptedModel([say("b1")], facts=replace(SCRIPTED_FACTS, id="model-2"))
    first = ScriptedModel([say("a1")])
    async with bench(first, source=OneModel(first, second)) as b:
        await talked(b, "u1")
        await b.session.models.choose("scripted/model-2")
        await b.session.models.think("high")
        await talked(b, "u2")
        await b.session.tree.navigate(node(b, "a1"))
        assert b.session.info.config.model == "scripted/model-1"
        await b.session.tree.navigate(node(b, "b1"))
        assert (b.session.info.config.model, b.session.info.config.thinking) == (
            "scripted/model-2",
            "high",
        )
        told = [e for e in b.seen() if isinstance(e, ModelChanged) and e.source == "restore"]
        assert [(e.model, e.thinking) for e in told] == [
            ("scripted/model-1", "high"),
            ("scripted/model-2", "high"),
        ]


async def test_a_model_that_is_gone_is_told_and_the_present_one_goes_on() -> None:
    store = MemoryStore()
    second = ScriptedModel([say("b1"), say("b2")], facts=replace(SCRIPTED_FACTS, id="model-2"))
    async with bench(ScriptedModel([say("a1")]), store=store) as b:
        await talked(b, "u1")
        session = b.session.id
    async with bench(second, store=store, opened=await store.open(session)) as b:
        await talked(b, "u2", "u3")
        await b.session.tree.navigate(node(b, "a1"))
        assert b.session.info.config.model == "scripted/model-2"
        (notice,) = [e.text for e in b.seen() if isinstance(e, Notice)]
        assert "scripted/model-1, which cannot be used now; scripted/model-2 goes on" in notice


async def test_the_figures_are_those_of_the_new_branch_and_the_cost_stays() -> None:
    turns = [say(f"a{n}", usage=Usage(input=100 * n, output=1)) for n in (1, 2)]
    async with bench(ScriptedModel(turns)) as b:
        await talked(b, "u1", "u2")
        await b.session.tree.navigate(node(b, "a1"))
        usage = b.session.info.snapshot().usage
        assert (usage.context_used, usage.tokens.input) == (101, 300)
        assert [e.usage for e in b.seen() if isinstance(e, SessionUsage)][-1] == usage


async def test_words_that_wait_stay_and_survive_on_whatever_branch() -> None:
    store = MemoryStore()
    async with bench(talk(), store=store) as b:
        await talked(b, "u1", "u2")
        await b.session.steer("later", if_idle="hold")
        await b.session.tree.navigate(node(b, "a1"))
        assert [words.content for words in b.session.info.snapshot().queue] == [
            (Text(text="later"),)
        ]
        session = b.session.id
    async with bench(talk(), store=store, opened=await store.open(session)) as b:
        queue = b.session.info.snapshot().queue
        assert [item.content for item in queue] == [(Text(text="later"),)]


# --- labels and the title


async def test_a_label_is_given_and_taken_off() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1")
        answer = node(b, "a1")

        def label() -> str | None:
            (found,) = [one.label for one in b.session.tree.nodes() if one.entry == answer]
            return found

        await b.session.tree.label(answer, "  good\nstart ")
        assert label() == "good start"
        (at_ms,) = [one.label_at_ms for one in b.session.tree.nodes() if one.entry == answer]
        assert at_ms == b.clock.now_ms()
        written = len(b.session.info.entries)
        await b.session.tree.label(answer, "good start")
        assert len(b.session.info.entries) == written
        await b.session.tree.label(answer, "")
        assert label() is None
        assert context(b) == ["u1", "a1"]
        assert [e for e in b.seen() if isinstance(e, EntryLabelled)] == [
            EntryLabelled(entry=answer, label="good start"),
            EntryLabelled(entry=answer, label=None),
        ]


@pytest.mark.parametrize("summarize", [False, True], ids=["plain", "with-summary"])
async def test_the_label_of_a_move_goes_to_the_summary_else_to_the_target(
    *, summarize: bool
) -> None:
    async with bench(talk(SUMMARY)) as b:
        await talked(b)
        moved = await b.session.tree.navigate(node(b, "a1"), summarize=summarize, label="back")
        labelled = {one.entry: one.label for one in b.session.tree.nodes() if one.label}
        assert labelled == {moved.leaf: "back"}
        told = [e for e in b.seen() if isinstance(e, LeafMoved | EntryLabelled)]
        assert [type(e) for e in told] == [LeafMoved, EntryLabelled]
        assert moved.leaf is not None
        assert told[-1] == EntryLabelled(entry=moved.leaf, label="back")
        assert (moved.leaf == node(b, "a1")) is not summarize


async def test_the_title_is_set_told_and_cleared() -> None:
    async with bench(talk()) as b:
        await talked(b, "u1")
        await b.session.tree.rename(" Fix\r\nthe parser ")
        assert b.session.tree.title == "Fix the parser"
        await b.session.tree.rename("Fix the parser")
        await b.session.tree.rename("  ")
        assert b.session.tree.title is None
        await b.session.tree.rename(None)
        assert [e.title for e in b.seen() if isinstance(e, SessionTitle)] == [
            "Fix the parser",
            None,
        ]
