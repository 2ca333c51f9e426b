"""One model call becomes one message: what is told while it streams, and what is kept however it ends."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import anyio
import pytest
from typing_extensions import override

from agent_core.events import (
    Event,
    MessageEnded,
    MessageStarted,
    RunEnded,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolRunning,
    ToolStarted,
    TurnEnded,
)
from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import (
    AssistantMessage,
    Cost,
    Text,
    Thinking,
    ToolCall,
    Usage,
    UserMessage,
)
from agent_core.providers import (
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageUpdate,
)
from agent_core.session.context import SessionOptions
from agent_core.session.runs.retry_policy import RetryOptions
from tests.support.session.scripted_model import Gate, ScriptedModel, Step, answer, both, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import echo

ONCE = SessionOptions(retry=RetryOptions(enabled=False))
DOWN = ProviderError("the provider is down", reason="server", provider="scripted")


async def go(b: Bench) -> list[Event]:
    await b.session.prompt("go")
    return await b.idle()


def spoken(events: list[Event]) -> list[MessageEnded]:
    return [one for one in events if isinstance(one, MessageEnded) and one.role == "assistant"]


async def test_a_thought_is_told_as_it_comes_and_ends_when_the_answer_is_kept() -> None:
    steps = (
        ThinkingDelta(text="let me "),
        ThinkingDelta(text="see"),
        TextDelta(text="It is so"),
        answer(Thinking(text="let me see", signature="s"), Text(text="It is so")),
    )
    async with bench(ScriptedModel([steps])) as b:
        events = await go(b)
        names = [name for name in b.names() if name.startswith(("thought.", "message."))]
        assert names[2:] == [
            "message.started",
            "thought.started",
            "thought.delta",
            "message.delta",
            "thought.ended",
            "message.ended",
        ]
        (started,) = [e for e in events if isinstance(e, ThoughtStarted)]
        (delta,) = [e for e in events if isinstance(e, ThoughtDelta)]
        (ended,) = [e for e in events if isinstance(e, ThoughtEnded)]
        assert (delta.text, ended.text) == ("let me see", "let me see")
        assert started.item == delta.item == ended.item != spoken(events)[0].item
        assert spoken(events)[0].content == (Text(text="It is so"),)
        assert b.messages[-1] == AssistantMessage(
            content=(Thinking(text="let me see", signature="s"), Text(text="It is so")),
            api="embedded",
            provider="scripted",
            model="model-1",
            stop_reason="stop",
            at_ms=0,
        )


async def test_two_thoughts_are_two_items() -> None:
    steps = (
        ThinkingDelta(text="one"),
        TextDelta(text="a"),
        ThinkingDelta(text="two"),
        answer(Thinking(text="one"), Text(text="a"), Thinking(text="two")),
    )
    async with bench(ScriptedModel([steps])) as b:
        ended = [e for e in await go(b) if isinstance(e, ThoughtEnded)]
        assert [e.text for e in ended] == ["one", "two"]
        assert ended[0].item != ended[1].item


async def test_an_answer_that_was_not_streamed_is_told_as_one_piece() -> None:
    async with bench(ScriptedModel([(answer(Text(text="all at once")),)])) as b:
        events = await go(b)
        assert "message.delta" in b.names()
        assert spoken(events)[0].content == (Text(text="all at once"),)


async def test_a_call_that_was_not_streamed_is_announced_before_it_runs() -> None:
    asked = ToolCall(id=ToolCallId("c1"), name="echo", arguments={"text": "x"})
    model = ScriptedModel([(answer(asked, stop_reason="tool_use"),), say("ok")])
    async with bench(model, tools=[echo()]) as b:
        events = await go(b)
        (started,) = [e for e in events if isinstance(e, ToolStarted)]
        (running,) = [e for e in events if isinstance(e, ToolRunning)]
        (ended,) = [e for e in events if isinstance(e, ToolEnded)]
        assert started.item == running.item == ended.item
        assert (started.call, started.name, b.results()) == ("c1", "echo", ["echo:x"])


async def test_streamed_calls_keep_their_items_and_their_arguments_are_told() -> None:
    model = ScriptedModel(
        [both(call("echo", {"text": "1"}, id="a"), call("echo", {"text": "2"}, id="b")), say("ok")]
    )
    async with bench(model, tools=[echo()]) as b:
        events = await go(b)
        started = [e for e in events if isinstance(e, ToolStarted)]
        ended = [e for e in events if isinstance(e, ToolEnded)]
        assert [(e.item, e.call) for e in started] == [(e.item, e.call) for e in ended]
        told = {e.item: e.text for e in events if isinstance(e, ToolInputDelta)}
        assert [told[e.item] for e in started] == ['{"text": "1"}', '{"text": "2"}']


async def test_argument_text_of_a_call_that_nobody_announced_is_passed_over() -> None:
    steps = (ToolCallDelta(index=3, text="{}"), *say("fine"))
    async with bench(ScriptedModel([steps])) as b:
        events = await go(b)
        assert not any(isinstance(e, ToolInputDelta) for e in events)
        assert [e.status for e in events if isinstance(e, RunEnded)] == ["completed"]


async def test_a_call_that_fails_in_the_middle_keeps_the_words_and_runs_no_tool() -> None:
    tool = echo()
    steps = (
        TextDelta(text="I will"),
        ThinkingDelta(text="hm"),
        ToolCallStart(index=0, name="echo", id="c1"),
        ToolCallDelta(index=0, text='{"te'),
        DOWN,
    )
    async with bench(ScriptedModel([steps]), tools=[tool], options=ONCE) as b:
        events = await go(b)
        last = b.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert (last.text, last.stop_reason, last.error) == (
            "I will",
            "error",
            "the provider is down",
        )
        assert last.tool_calls == ()
        (ended,) = [e for e in events if isinstance(e, ToolEnded)]
        assert (ended.call, ended.status, ended.content, ended.duration_ms) == (
            "c1",
            "cancelled",
            (),
            None,
        )
        assert [e.stop_reason for e in spoken(events)] == ["error"]
        assert [e.stop_reason for e in events if isinstance(e, TurnEnded)] == ["error"]
        assert len([e for e in events if isinstance(e, ThoughtEnded)]) == 1
        assert tool.calls == []
        assert (await b.session.abort()).status == "alreadyEnded"


@pytest.mark.parametrize(
    "steps",
    [(DOWN,), (ToolCallStart(index=0, name="echo", id="c1"), DOWN)],
    ids=["nothing", "only-a-call"],
)
async def test_a_call_that_fails_without_words_is_kept_as_that_and_ends_what_was_told(
    steps: tuple[Step, ...],
) -> None:
    async with bench(ScriptedModel([steps]), options=ONCE) as b:
        events = await go(b)
        asked, failed = b.messages
        assert isinstance(asked, UserMessage)
        assert isinstance(failed, AssistantMessage)
        assert (failed.content, failed.stop_reason, failed.error) == (
            (),
            "error",
            "the provider is down",
        )
        started = [e.item for e in events if isinstance(e, MessageStarted | ToolStarted)]
        ended = [e.item for e in events if isinstance(e, MessageEnded | ToolEnded)]
        assert sorted(started) == sorted(ended)
        (end,) = [e for e in events if isinstance(e, RunEnded)]
        assert end.error is not None
        assert (end.status, end.error.message) == ("failed", "the provider is down")


async def test_an_abort_in_a_call_ends_everything_that_was_told() -> None:
    gate = Gate()
    steps = (
        TextDelta(text="I will"),
        ToolCallStart(index=0, name="echo", id="c1"),
        ThinkingDelta(text="hm"),
        gate,
        *say("x"),
    )
    async with bench(ScriptedModel([steps]), tools=[echo()]) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.abort()
        events = b.seen()
        assert [e.status for e in events if isinstance(e, ToolEnded)] == ["cancelled"]
        assert [e.text for e in events if isinstance(e, ThoughtEnded)] == ["hm"]
        assert [e.stop_reason for e in spoken(events)] == ["aborted"]
        assert [e.stop_reason for e in events if isinstance(e, TurnEnded)] == ["aborted"]


class Silent(ScriptedModel):
    """Ends its stream as if all had been said, without an answer."""

    @override
    async def _play(self, steps: Sequence[Step]) -> AsyncGenerator[StreamEvent, None]:
        for step in steps:
            assert isinstance(step, TextDelta)
            yield step


async def test_a_stream_that_ends_without_an_answer_fails_the_call() -> None:
    async with bench(Silent([(TextDelta(text="half"),)]), options=ONCE) as b:
        (end,) = [e for e in await go(b) if isinstance(e, RunEnded)]
        assert end.error is not None
        assert (end.status, end.error.kind) == ("failed", "ModelError")
        assert "scripted/model-1 ended its stream without an answer" in end.error.message


async def test_an_answer_whose_stop_reason_is_none_fails_the_call_and_names_those_there_are() -> (
    None
):
    # As an extension may bring it, whose types nobody checks.
    ended = answer(Text(text="half"), stop_reason="end_turn")  # pyright: ignore[reportArgumentType]
    steps = (TextDelta(text="half"), ended)
    async with bench(ScriptedModel([steps]), options=ONCE) as b:
        (end,) = [e for e in await go(b) if isinstance(e, RunEnded)]
        assert end.error is not None
        assert (end.status, end.error.kind) == ("failed", "ModelError")
        assert (
            "stop_reason 'end_turn', which is none of stop, length, tool_use" in end.error.message
        )


async def test_a_thought_is_not_told_as_ended_before_it_is_in_the_session() -> None:
    gate = Gate()
    steps = (ThinkingDelta(text="hm"), TextDelta(text="It "), gate, answer(Text(text="It is")))
    async with bench(ScriptedModel([steps])) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert not any(isinstance(e, ThoughtEnded) for e in b.seen())
        gate.release()
        assert [e.text for e in await b.idle() if isinstance(e, ThoughtEnded)] == ["hm"]


async def test_a_thought_without_a_word_is_kept_when_the_call_fails() -> None:
    model = ScriptedModel([(ThinkingDelta(text="let me see"), DOWN)])
    async with bench(model, options=ONCE) as b:
        events = await go(b)
        assert [e.text for e in events if isinstance(e, ThoughtEnded)] == ["let me see"]
        last = b.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert (last.content, last.stop_reason) == ((Thinking(text="let me see"),), "error")


async def test_a_thought_without_a_word_is_kept_when_the_call_is_cancelled() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(ThinkingDelta(text="let me see"), gate, *say("x"))])) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.abort()
        assert [e.text for e in b.seen() if isinstance(e, ThoughtEnded)] == ["let me see"]
        kept = [one for one in b.messages if isinstance(one, AssistantMessage)]
        assert [(one.content, one.stop_reason) for one in kept] == [
            ((Thinking(text="let me see"),), "aborted")
        ]


COUNTED = Usage(input=5_000, output=10, cost=Cost(input=0.015, output=0.00015))


def spent(b: Bench, events: list[Event]) -> tuple[Usage, ...]:
    """Give what was used by every account that there is: turn, run, session, transcript."""
    (turn,) = [e.usage.tokens for e in events if isinstance(e, TurnEnded)]
    (run,) = [e.usage.tokens for e in events if isinstance(e, RunEnded)]
    stats = b.session.info.stats()
    kept = [one.usage for one in b.messages if isinstance(one, AssistantMessage)]
    return turn, run, replace(stats.tokens), *kept


@pytest.mark.parametrize("begun", [(), (TextDelta(text="half"),)], ids=["no-word", "words"])
async def test_what_a_broken_answer_has_used_is_counted_everywhere(begun: tuple[Step, ...]) -> None:
    early = UsageUpdate(usage=Usage(input=5_000))
    model = ScriptedModel([(early, *begun, UsageUpdate(usage=COUNTED), DOWN)])
    async with bench(model, options=ONCE) as b:
        assert spent(b, await go(b)) == (COUNTED,) * 4


@pytest.mark.parametrize("begun", [(), (TextDelta(text="half"),)], ids=["no-word", "words"])
async def test_what_a_cancelled_answer_has_used_is_counted_everywhere(
    begun: tuple[Step, ...],
) -> None:
    gate = Gate()
    model = ScriptedModel([(UsageUpdate(usage=COUNTED), *begun, gate, *say("x"))])
    async with bench(model) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.abort()
        assert spent(b, b.seen()) == (COUNTED,) * 4


async def test_counts_alone_announce_no_message() -> None:
    async with bench(ScriptedModel([(UsageUpdate(usage=COUNTED), DOWN)]), options=ONCE) as b:
        await go(b)
        assert "message.started" not in b.names()[4:]
