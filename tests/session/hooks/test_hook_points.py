"""Where a session asks its hooks, with what, and what their answers do there."""

from itertools import groupby
from typing import Any

import anyio
import pytest

from agent_core.compaction import CompactionPolicy
from agent_core.events import (
    MessageEnded,
    QuestionLine,
    RunEnded,
    ToolRunning,
    TurnEnded,
)
from agent_core.hooks import (
    AnswerReplaced,
    BranchSummaryGiven,
    Compacting,
    CompactionCancelled,
    CompactionFailed,
    CompactionKept,
    ForkCancelled,
    MessageGrown,
    MessageOver,
    ModelSelected,
    NavigationCancelled,
    NavigationChanged,
    PromptClosed,
    PromptShown,
    RequestBuilt,
    RequestReplaced,
    RunOver,
    RunSettled,
    SessionBegun,
    SessionEnding,
    SessionForked,
    SessionForking,
    SessionNamed,
    SessionSwitched,
    SessionSwitching,
    SummaryGiven,
    SwitchCancelled,
    ThinkingSelected,
    ToolBegun,
    ToolOver,
    ToolPrinted,
    TreeNavigated,
    TreeNavigating,
    TurnOver,
)
from agent_core.kernel import EntryId, JsonObject, SessionId
from agent_core.kernel.errors import ForkRefused, SwitchRefused
from agent_core.messages import AssistantMessage, Text, UserMessage
from agent_core.session.context import SessionOptions
from agent_core.session.permissions.broker import PermissionState
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools import ToolContext, ToolResult, text_result
from agent_core.transcript import Header
from tests.support.harness.clock import FakeClock
from tests.support.hooks.hook_listener import Listener
from tests.support.session.entries import chain, user
from tests.support.session.scripted_model import (
    SCRIPTED_FACTS,
    Gate,
    ScriptedModel,
    both,
    call,
    say,
    think,
)
from tests.support.session.sessions import Bench, bench
from tests.support.session.trees import SUMMARY, node, talk, talked
from tests.support.workspace.tools import FunctionTool, echo

OPENED = 2
"""Points at which every session is asked when it opens: `resources_discover`, `session_start`."""


async def go(b: Bench, words: str = "go") -> None:
    await b.session.prompt(words)
    await b.idle()


async def test_a_run_asks_at_its_points_in_this_order() -> None:
    listener = Listener()
    model = ScriptedModel([both(say("I look."), call("echo", {"text": "x"})), say("done")])
    async with bench(model, tools=[echo()], hooks=listener.table) as b:
        await go(b)
    # A growing answer is told at intervals.
    assert [name for name, _ in groupby(listener.names())] == [
        "resources_discover",
        "session_start",
        "input",
        "before_agent_start",
        "agent_start",
        "message_start",
        "message_end",
        "turn_start",
        "context",
        "context_with_system",
        "message_start",
        "message_update",
        "message_end",
        "tool_call",
        "tool_execution_start",
        "tool_result",
        "tool_execution_end",
        "turn_end",
        "turn_start",
        "context",
        "context_with_system",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
        "session_shutdown",
    ]


async def test_hooks_are_told_what_a_turn_came_to() -> None:
    listener = Listener()
    model = ScriptedModel([call("echo", {"text": "x"}, id="c1"), say("done")])
    async with bench(model, tools=[echo()], hooks=listener.table) as b:
        await go(b)
        first, second = listener.of(TurnOver)
        assert (first.index, first.message.tool_calls[0].id) == (0, "c1")
        assert [one.content for one in first.results] == [(Text(text="echo:x"),)]
        assert (second.index, second.message.text, second.results) == (1, "done", ())
        begun, over = listener.one(ToolBegun), listener.one(ToolOver)
        assert (begun.tool, begun.arguments) == ("echo", {"text": "x"})
        assert (over.tool, over.status, over.content) == ("echo", "ok", (Text(text="echo:x"),))
        assert listener.one(RunOver).messages == b.messages
        assert listener.one(RunSettled).status == "completed"
        said = listener.of(MessageOver)[0].message
        assert isinstance(said, UserMessage)


async def test_hooks_hear_all_of_what_grows_before_its_end() -> None:
    async def print_much(_: JsonObject, context: ToolContext) -> ToolResult:
        for word in ("a", "b", "c"):
            context.output(word)
            await anyio.lowlevel.checkpoint()
        return text_result("printed")

    listener = Listener()
    model = ScriptedModel([both(think("hm"), say("one "), say("two"), call("print")), say("done")])
    async with bench(model, tools=[FunctionTool("print", print_much)], hooks=listener.table) as b:
        await go(b)
    assert "".join(one.text for one in listener.of(MessageGrown)) == "one twodone"
    assert "".join(one.text for one in listener.of(ToolPrinted)) == "abc"
    names = listener.names()
    assert names.index("tool_execution_update") < names.index("tool_execution_end")


async def test_a_hook_replaces_the_words_of_an_answer_before_they_are_kept() -> None:
    listener = Listener(says={MessageOver: AnswerReplaced(text="[REDACTED]")})
    model = ScriptedModel([both(say("the key is 123"), call("echo", {"text": "x"})), say("bye")])
    async with bench(model, tools=[echo()], hooks=listener.table) as b:
        await go(b)
        kept = [one for one in b.messages if isinstance(one, AssistantMessage)]
        assert [one.text for one in kept] == ["[REDACTED]"] * 2
        assert [one.name for one in kept[0].tool_calls] == ["echo"]
        assert b.results() == ["echo:x"]
        told = [
            e.content for e in b.seen() if isinstance(e, MessageEnded) and e.role == "assistant"
        ]
        assert told == [(Text(text="[REDACTED]"),)] * 2


async def test_a_hook_changes_a_request_with_its_system_prompt() -> None:
    other = UserMessage(content=(Text(text="other"),), at_ms=0)
    listener = Listener(says={RequestBuilt: RequestReplaced(system="be brief", messages=(other,))})
    model = ScriptedModel([say("ok")])
    async with bench(model, hooks=listener.table) as b:
        await go(b)
        assert (model.requests[0].system, model.requests[0].messages) == ("be brief", (other,))
        assert listener.one(RequestBuilt).system.startswith("You are tested.")


async def test_a_cancelled_run_tells_its_end() -> None:
    gate, listener = Gate(), Listener()
    async with bench(ScriptedModel([(gate, *say("late"))]), hooks=listener.table) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.abort()
        assert listener.names()[-2:] == ["agent_end", "agent_settled"]
        assert listener.one(RunSettled).status == "cancelled"


# Compaction.


async def long_talk(b: Bench) -> None:
    await go(b, "one")
    await go(b, "two")


def long_model(*more: Any) -> ScriptedModel:
    long = "word " * 1_500
    facts = SCRIPTED_FACTS.__class__(
        provider="scripted",
        id="model-1",
        api="embedded",
        name="Small",
        context_window=8_000,
        max_tokens=1_000,
    )
    return ScriptedModel([say(long), say(long), *more], facts=facts)


BY_HAND = SessionOptions(auto_compact=False, compaction=CompactionPolicy())


async def test_a_compaction_is_told_when_it_is_kept() -> None:
    listener = Listener()
    async with bench(long_model(say("## Goal\nx")), hooks=listener.table, options=BY_HAND) as b:
        await long_talk(b)
        await b.session.compact("look at x")
        await b.idle()
        asked, kept = listener.one(Compacting), listener.one(CompactionKept)
        assert (asked.reason, asked.instructions) == ("manual", "look at x")
        assert (kept.reason, kept.from_hook) == ("manual", False)
        assert kept.summary.endswith("## Goal\nx")
        assert kept.entry in {one.id for one in b.session.info.entries}
        assert listener.of(CompactionFailed) == []


async def test_a_summary_of_a_hook_is_told_as_such() -> None:
    listener = Listener(says={Compacting: SummaryGiven(summary="mine")})
    async with bench(long_model(), hooks=listener.table, options=BY_HAND) as b:
        await long_talk(b)
        await b.session.compact()
        await b.idle()
        kept = listener.one(CompactionKept)
        assert (kept.summary, kept.from_hook) == ("mine", True)


async def test_a_compaction_that_comes_to_nothing_is_told() -> None:
    listener = Listener(says={Compacting: CompactionCancelled()})
    async with bench(long_model(), hooks=listener.table, options=BY_HAND) as b:
        await long_talk(b)
        await b.session.compact()
        await b.idle()
        failed = listener.one(CompactionFailed)
        assert (failed.reason, failed.aborted) == ("manual", True)
        assert listener.of(CompactionKept) == []


# The tree.


async def test_a_move_is_asked_and_told() -> None:
    listener = Listener()
    async with bench(talk(SUMMARY), hooks=listener.table) as b:
        await talked(b)
        left, target = b.session.tree.leaf, node(b, "a1")
        moved = await b.session.tree.navigate(target, summarize=True, label="back")
        asked, told = listener.one(TreeNavigating), listener.one(TreeNavigated)
        assert (asked.target, asked.old_leaf, asked.common_ancestor) == (target, left, target)
        assert (asked.wants_summary, asked.label, len(asked.messages)) == (True, "back", 4)
        assert (told.old_leaf, told.new_leaf) == (left, moved.leaf)
        assert (told.summary, told.from_hook) == (moved.summary, False)


async def test_a_hook_prevents_a_move() -> None:
    listener = Listener(says={TreeNavigating: NavigationCancelled()})
    async with bench(talk(), hooks=listener.table) as b:
        await talked(b)
        left = b.session.tree.leaf
        assert (await b.session.tree.navigate(node(b, "a1"))).cancelled
        assert (b.session.tree.leaf, listener.of(TreeNavigated)) == (left, [])


async def test_a_hook_gives_the_summary_of_a_branch() -> None:
    listener = Listener(says={TreeNavigating: BranchSummaryGiven(summary="mine")})
    model = talk()
    async with bench(model, hooks=listener.table) as b:
        await talked(b)
        asked = len(model.requests)
        moved = await b.session.tree.navigate(node(b, "a1"), summarize=True)
        assert (moved.summary, len(model.requests)) == ("mine", asked)
        assert listener.one(TreeNavigated).from_hook


async def test_a_hook_changes_how_a_branch_is_summarised() -> None:
    changed = NavigationChanged(instructions="only tests", replaces_instructions=True, label="mine")
    listener = Listener(says={TreeNavigating: changed})
    model = talk(SUMMARY)
    async with bench(model, hooks=listener.table) as b:
        await talked(b)
        moved = await b.session.tree.navigate(node(b, "a1"), summarize=True)
        assert "only tests" in str(model.requests[-1].messages)
        labels = {one.entry: one.label for one in b.session.tree.nodes()}
        assert labels.get(moved.leaf or EntryId("")) == "mine"


async def test_a_copy_is_asked_and_told() -> None:
    listener = Listener()
    async with bench(talk(), hooks=listener.table) as b:
        await talked(b)
        target = node(b, "u2")
        forked = await b.session.tree.fork(target)
        cloned = await b.session.tree.clone()
        assert [one.entry for one in listener.of(SessionForking)] == [target, None]
        assert [one.session for one in listener.of(SessionForked)] == [
            forked.session,
            cloned.session,
        ]
        assert {one.previous for one in listener.of(SessionForked)} == {b.session.id}


async def test_a_hook_prevents_a_copy() -> None:
    listener = Listener(says={SessionForking: ForkCancelled(reason="not now")})
    async with bench(talk(), hooks=listener.table) as b:
        await talked(b)
        with pytest.raises(ForkRefused, match="not now"):
            await b.session.tree.fork(node(b, "u2"))
        with pytest.raises(ForkRefused, match="not now"):
            await b.session.tree.clone()
        assert listener.of(SessionForked) == []


async def test_a_new_name_is_told() -> None:
    listener = Listener()
    async with bench(talk(), hooks=listener.table) as b:
        await b.session.tree.rename("first")
        await b.session.tree.rename("first")
        assert listener.of(SessionNamed) == [SessionNamed(name="first")]


# Choices.


async def test_another_model_and_thinking_level_are_told() -> None:
    listener = Listener()
    async with bench(talk(), hooks=listener.table) as b:
        await b.session.models.think("high")
        await b.session.models.choose("scripted/model-1:low")
        assert [(one.level, one.previous) for one in listener.of(ThinkingSelected)] == [
            ("high", "medium"),
            ("low", "high"),
        ]
        # The model stayed the same.
        assert listener.of(ModelSelected) == []


# A session and others.


async def test_a_session_tells_its_beginning_and_end() -> None:
    listener = Listener()
    async with bench(talk(), hooks=listener.table):
        assert listener.names() == ["resources_discover", "session_start"]
        assert listener.one(SessionBegun).reason == "new"
    assert listener.heard[OPENED:] == [SessionEnding(reason="quit")]


async def test_a_session_that_was_stored_begins_as_one_that_is_resumed() -> None:
    listener = Listener()
    log = await MemoryStore().create(Header(id=SessionId("s-1"), at_ms=1, cwd="/project"))
    opened = OpenedSession(log=log, entries=chain(user("hi")), recovery=Recovery())
    async with bench(talk(), hooks=listener.table, opened=opened):
        assert listener.one(SessionBegun).reason == "resume"


async def test_a_switch_is_asked_and_told() -> None:
    listener = Listener()
    async with bench(talk(), hooks=listener.table) as b:
        await b.session.switching.leave(SessionId("s-2"), reason="resume")
        await b.session.switching.arrived(SessionId("s-2"), reason="new")
        assert listener.heard[OPENED:] == [
            SessionSwitching(reason="resume", target=SessionId("s-2")),
            SessionSwitched(reason="new", previous=SessionId("s-2")),
        ]
        listener.says[SessionSwitching] = SwitchCancelled(reason="unsaved notes")
        with pytest.raises(SwitchRefused, match="unsaved notes"):
            await b.session.switching.leave(None, reason="new")


# Questions.


async def test_hooks_are_told_when_a_person_is_asked() -> None:
    line = QuestionLine(id="sure", text="Are you sure?", kind="confirm")

    async def ask(_: JsonObject, context: ToolContext) -> ToolResult:
        await context.ask((line,), blocking=True)
        return text_result("asked")

    listener = Listener()
    model = ScriptedModel([call("ask"), say("done")])
    tool = FunctionTool("ask", ask)
    async with bench(
        model, tools=[tool], hooks=listener.table, standing=PermissionState(mode="ask")
    ) as b:
        await b.session.prompt("go")
        while not b.session.permissions.pending and not b.session.questions.pending:
            await anyio.lowlevel.checkpoint()
        for request in b.session.permissions.pending:
            b.session.permissions.answer(request.request, request.options[0].id, by="test")
        with anyio.fail_after(5):
            while not b.session.questions.pending:
                await anyio.lowlevel.checkpoint()
        b.session.questions.answer(
            b.session.questions.pending[0].request, {"sure": True}, by="test"
        )
        await b.idle()
        assert any(isinstance(one, ToolRunning) for one in b.seen())
    asked = PromptShown(kind="question", title="Are you sure?")
    assert listener.of(PromptShown)[-1] == asked
    assert PromptClosed(kind="question", title="Are you sure?") in listener.heard


async def test_what_ended_says_how_long_it_took_and_of_how_much_it_was() -> None:
    clock = FakeClock()

    async def work(_: JsonObject, context: ToolContext) -> ToolResult:
        clock.advance(1.5)
        return text_result("done")

    listener = Listener()
    two = both(call("work", id="c1"), call("work", {"n": 2}, id="c2"))
    model = ScriptedModel([two, call("work", {"n": 3}, id="c3"), say("done")])
    tools = [FunctionTool("work", work)]
    async with bench(model, tools=tools, hooks=listener.table, clock=clock) as b:
        await go(b)
        events = b.seen()
    assert [one.duration_ms for one in listener.of(TurnOver)] == [3_000, 1_500, 0]
    assert [e.duration_ms for e in events if isinstance(e, TurnEnded)] == [3_000, 1_500, 0]
    (ended,) = [e for e in events if isinstance(e, RunEnded)]
    over, settled = listener.one(RunOver), listener.one(RunSettled)
    for told in (ended, over, settled):
        assert (told.duration_ms, told.turns, told.tool_calls) == (4_500, 3, 3)
