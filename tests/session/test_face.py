"""The face of a session beyond its runs: views and switches, and the fence around a tool that does not stop."""

from dataclasses import replace
from typing import Literal

import anyio
import pytest

from agent_core.events import (
    ModelChanged,
    Notice,
    QueueChanged,
    RunEnded,
    SessionConfig,
    SessionConfigured,
)
from agent_core.kernel import ItemId, RunId
from agent_core.kernel.errors import (
    ImagesUnsupported,
    ModelUnknown,
    QueueFull,
    RunMismatch,
    SessionClosed,
    ToolSetInvalid,
)
from agent_core.messages import Image, Text, UserMessage
from agent_core.providers import ModelInfo
from agent_core.session.input.queue import QUEUE_LIMIT, Replace, SendNow
from agent_core.session.runs.recovered_state import recover_state
from agent_core.transcript.entries import ModelChange, ThinkingChange
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, OneModel, bench, words
from tests.support.workspace.tools import echo

OTHER = ModelInfo(
    provider="scripted",
    id="model-2",
    api="embedded",
    name="Other",
    context_window=64_000,
    max_tokens=1_000,
)


async def entered(event: anyio.Event) -> None:
    with anyio.fail_after(5):
        await event.wait()


def ends(b: Bench) -> list[RunEnded]:
    return [one for one in b.seen() if isinstance(one, RunEnded)]


# Switches and views.


async def test_the_expected_run_is_steered_and_no_other() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")])) as b:
        receipt = await b.session.prompt("go")
        await entered(gate.reached)
        steered = await b.session.steer("more", expected_run=receipt.run)
        assert (steered.accepted, steered.run) == ("steered", receipt.run)
        with pytest.raises(RunMismatch, match="'r-9' was expected"):
            await b.session.steer("less", expected_run=RunId("r-9"))
        gate.release()
        await b.idle()
        said = [words(m) for m in b.messages if isinstance(m, UserMessage)]
        assert said == ["go", "more"]


async def test_switches_are_told_with_all_that_is_in_force() -> None:
    async with bench(ScriptedModel()) as b:
        wanted = SessionConfig(
            model="scripted/model-1",
            thinking="medium",
            mode="plan",
            auto_compact=False,
            steering="all",
            follow_up="all",
            tools=("unused",),
        )
        given = b.session.info.configure(
            mode="plan", auto_compact=False, steering="all", follow_up="all"
        )
        assert given == wanted == b.session.info.config == b.session.info.snapshot().config
        assert b.seen() == [SessionConfigured(config=wanted)]
        assert b.session.info.configure() == wanted


async def test_another_model_counts_from_the_next_request_and_is_in_the_file() -> None:
    first, second = ScriptedModel([say("one")]), ScriptedModel([say("two")], facts=OTHER)
    async with bench(first, source=OneModel(first, second)) as b:
        await b.session.prompt("go")
        await b.idle()
        assert await b.session.models.choose("scripted/model-2") == OTHER
        assert b.session.models.current == OTHER
        await b.session.prompt("go on")
        await b.idle()
        assert (len(first.requests), len(second.requests)) == (1, 1)
        changed = [one for one in b.seen() if isinstance(one, ModelChanged)]
        assert changed == [ModelChanged(model="scripted/model-2", thinking="medium", source="set")]
        kept = [one for one in b.session.info.entries if isinstance(one, ModelChange)]
        assert [(one.provider, one.model) for one in kept] == [("scripted", "model-2")]
        assert b.session.info.snapshot().usage.context_size == 64_000


async def test_an_unknown_model_is_refused_and_the_choice_stays() -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(ModelUnknown, match="no model 'scripted/nope'"):
            await b.session.models.choose("scripted/nope")
        assert b.session.models.current == SCRIPTED_FACTS
        assert b.seen() == []


async def test_the_thinking_level_counts_from_the_next_request_and_is_kept_once() -> None:
    model = ScriptedModel([say("a")])
    async with bench(model) as b:
        await b.session.models.think("high")
        await b.session.models.think("high")
        await b.session.prompt("go")
        await b.idle()
        assert model.requests[0].thinking == "high"
        kept = [one.level for one in b.session.info.entries if isinstance(one, ThinkingChange)]
        assert kept == ["high"]


async def test_without_a_model_there_is_none_to_show() -> None:
    async with bench(ScriptedModel(), usable=False) as b:
        assert b.session.models.current is None
        assert b.session.info.config.model is None
        with pytest.raises(ModelUnknown):
            await b.session.compact()


async def test_tools_can_be_chosen_and_added_between_requests() -> None:
    one, two, three = echo("one"), echo("two"), echo("three")
    model = ScriptedModel([say("a"), call("three", {"text": "x"}), say("b")])
    async with bench(model, tools=[one, two]) as b:
        tools = b.session.tools
        await tools.activate(["-one"])
        assert (tools.active, tools.all) == (("two",), ("one", "two"))
        await b.session.prompt("go")
        await b.idle()
        tools.register(three)
        assert tools.active == ("two", "three")
        await b.session.prompt("go on")
        await b.idle()
        offered = [[tool.name for tool in request.tools] for request in model.requests]
        assert offered == [["two"], ["two", "three"], ["two", "three"]]
        assert b.results() == ["three:x"]
        configured = [e.config.tools for e in b.seen() if isinstance(e, SessionConfigured)]
        assert configured == [("two",), ("two", "three")]


async def test_a_set_of_tools_that_cannot_be_leaves_the_old_one() -> None:
    async with bench(ScriptedModel(), tools=[echo("one"), echo("two")]) as b:
        for wrong in ("", "nope", ["-one", "-two"]):
            with pytest.raises(ToolSetInvalid):
                await b.session.tools.activate(wrong)
        with pytest.raises(ToolSetInvalid, match="'one' exists already"):
            b.session.tools.register(echo("one"))
        assert b.session.tools.active == ("one", "two")
        assert b.seen() == []


async def test_a_tool_that_the_model_must_not_see_cannot_be_called() -> None:
    hidden = echo("hidden")
    model = ScriptedModel([call("hidden"), say("ok")])
    async with bench(model, tools=[echo("shown"), hidden]) as b:
        await b.session.tools.activate("shown")
        await b.session.prompt("go")
        await b.idle()
        assert b.results() == ["Tool hidden not found. There are: shown."]
        assert hidden.calls == []


async def test_a_picture_alone_is_a_prompt() -> None:
    model = ScriptedModel([say("a cat")], facts=replace(SCRIPTED_FACTS, images=True))
    picture = Image(mime="image/png", data="AA==")
    async with bench(model) as b:
        await b.session.prompt([picture])
        await b.idle()
        first = model.requests[0].messages[0]
        assert isinstance(first, UserMessage)
        assert first.content == (picture,)


async def test_a_picture_for_a_model_without_pictures_is_refused_before_it_is_kept() -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *say("a"))])
    picture = Image(mime="image/png", data="AA==")
    async with bench(model) as b:
        with pytest.raises(ImagesUnsupported, match=r"^Images are not sent to scripted/model-1: "):
            await b.session.prompt([Text(text="what is this?"), picture])
        assert b.session.info.entries == ()
        await b.session.prompt("go")
        await entered(gate.reached)
        with pytest.raises(ImagesUnsupported, match="takes text alone"):
            await b.session.steer([picture])
        receipt = await b.session.follow_up("look")
        assert receipt.queue_id is not None
        with pytest.raises(ImagesUnsupported):
            await b.session.queue.edit([Replace(queue_id=receipt.queue_id, content=(picture,))])
        assert [item.content for item in b.session.queue.items] == [(Text(text="look"),)]


@pytest.mark.parametrize("delivery", ["steer", "followUp"])
async def test_queued_pictures_are_held_when_a_model_without_pictures_is_chosen(
    delivery: Literal["steer", "followUp"],
) -> None:
    gate = Gate()
    seeing = ScriptedModel(
        [(gate, *call("echo", {"text": "x"})), say("on"), say("a cat")],
        facts=replace(SCRIPTED_FACTS, images=True),
    )
    blind = ScriptedModel([say("a"), say("b")], facts=replace(SCRIPTED_FACTS, id="blind"))
    picture = Image(mime="image/png", data="AA==")
    said = (Text(text="what is this?"), picture)
    both = OneModel(seeing, blind)
    async with bench(seeing, tools=[echo()], source=both) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        await b.session.prompt(said, delivery=delivery)
        await b.session.models.choose("scripted/blind")
        gate.release()
        await b.idle()
        notices = [e.text for e in b.seen() if isinstance(e, Notice)]
        assert notices == [
            (
                "1 queued message has images, which are not sent to scripted/blind: it takes text alone. The queue is paused. "
                'Remove the images, or choose a model that takes images, or give it "input": ["text", "image"] in models.json; '
                "then send the queue."
            )
        ]
        assert b.session.info.snapshot().paused
        assert [one.content for one in b.session.queue.items] == [said]
        assert "image" not in str(blind.requests)
        (waiting,) = b.session.queue.items
        await b.session.queue.edit([SendNow(queue_id=waiting.queue_id)])
        await b.idle()
        assert len([e for e in b.seen() if isinstance(e, Notice)]) == 2
        assert [one.content for one in b.session.queue.items] == [said]
        await b.session.models.choose(seeing.facts.ref)
        await b.session.queue.edit([SendNow(queue_id=waiting.queue_id)])
        await b.idle()
        assert b.session.queue.items == ()
        last = seeing.requests[-1].messages[-1]
        assert isinstance(last, UserMessage)
        assert last.content == said


async def test_the_queue_is_bounded_and_what_did_not_fit_is_not_kept() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a"))])) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        for number in range(QUEUE_LIMIT):
            await b.session.follow_up(str(number))
        with pytest.raises(QueueFull, match="wait already"):
            await b.session.follow_up("one too many")
        assert len(recover_state(b.session.info.entries).waiting) == QUEUE_LIMIT
        await b.session.abort(queue="drop")
        assert recover_state(b.session.info.entries).waiting == []


async def test_the_results_of_runs_can_be_asked_for_later_and_unknown_runs_have_none() -> None:
    async with bench(ScriptedModel([say("a"), say("b")])) as b:
        first = await b.session.prompt("one")
        assert first.run is not None
        assert b.session.info.is_running(first.run)
        await b.idle()
        await b.session.prompt("two")
        last = await b.session.wait_idle()
        assert last is not None
        assert last.text == "b"
        result = await b.session.wait(first.run)
        assert result is not None
        assert (result.text, b.session.info.is_running(first.run)) == ("a", False)
        assert await b.session.wait(RunId("never")) is None


async def test_a_failed_run_leaves_waiting_words_paused_and_says_so() -> None:
    gate = Gate()
    async with bench(ScriptedModel([(gate, RuntimeError("a bug"))])) as b:
        await b.session.prompt("go")
        await entered(gate.reached)
        await b.session.follow_up("later")
        gate.release()
        await b.idle()
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "Internal")
        assert "RuntimeError" in ended.error.message
        assert [e.paused for e in b.seen() if isinstance(e, QueueChanged)] == [False, True]
        assert b.session.info.snapshot().paused


async def test_closing_is_once_and_a_closed_session_has_no_more_events() -> None:
    async with bench(ScriptedModel([say("a")])) as b:
        await b.session.close()
        await b.session.close()
        assert await b.reader.take() == ()
        with pytest.raises(SessionClosed, match="is closed; open it again"):
            await b.session.compact()


async def test_nothing_running_cannot_be_stopped() -> None:
    async with bench(ScriptedModel([say("a")])) as b:
        assert (await b.session.abort()).status == "alreadyEnded"
        assert (await b.session.abort(item=ItemId("i"))).status == "alreadyEnded"


# The fence.


# What is said is well formed, whatever ended the run.
