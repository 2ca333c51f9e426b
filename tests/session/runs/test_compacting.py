"""A compaction that does not come to its end leaves the session as it was, and says so."""

import anyio

from agent_core.compaction import CompactionPolicy
from agent_core.events import CompactionEnded, CompactionStarted, RunEnded, SessionStateChanged
from agent_core.kernel.errors import ProviderError
from agent_core.messages import Usage
from agent_core.providers import ModelInfo
from agent_core.session.context import SessionOptions
from tests.support.session.scripted_model import Gate, ScriptedModel, Turn, say
from tests.support.session.sessions import Bench, bench

LONG = "word " * 1_500


def model(*turns: Turn, context_window: int = 8_000) -> ScriptedModel:
    facts = ModelInfo(
        provider="scripted",
        id="model-1",
        api="embedded",
        name="Small",
        context_window=context_window,
        max_tokens=1_000,
    )
    return ScriptedModel([say(LONG), say(LONG), *turns], facts=facts)


async def talked(b: Bench) -> None:
    for words in ("one", "two"):
        await b.session.prompt(words)
        await b.idle()


MANUAL = SessionOptions(auto_compact=False)


async def test_a_summary_that_cannot_be_had_is_told_and_nothing_is_lost() -> None:
    refused = ProviderError("no such model", reason="not_found", provider="p", status=404)
    async with bench(model(refused), options=MANUAL) as b:
        await talked(b)
        before = b.messages
        assert (await b.session.compact()).compaction is not None
        events = await b.idle()
        (ended,) = [e for e in events if isinstance(e, CompactionEnded)]
        assert ended.error is not None
        assert (ended.summary, ended.aborted, ended.error.message) == (None, False, "no such model")
        assert b.messages == before
        assert b.session.info.snapshot().state == "idle"


async def test_a_compaction_can_be_aborted() -> None:
    gate = Gate()
    scripted = model((gate, *say("## Goal\nx")), say("go on"))
    async with bench(scripted, options=MANUAL) as b:
        await talked(b)
        before = b.messages
        await b.session.compact()
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert b.session.info.snapshot().state == "compacting"
        result = await b.session.abort()
        assert (result.status, result.run, result.timed_out) == ("cancelled", None, False)
        (ended,) = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert (ended.aborted, ended.summary, ended.reason) == (True, None, "manual")
        assert [e.state for e in b.seen() if isinstance(e, SessionStateChanged)][-1] == "idle"
        assert b.messages == before
        assert scripted.open_streams == 0
        await b.session.prompt("three")
        await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 3


async def test_a_model_that_does_not_say_its_window_is_never_compacted_unasked() -> None:
    scripted = model(context_window=0)
    async with bench(scripted, options=SessionOptions(compaction=CompactionPolicy())) as b:
        await talked(b)
        assert not any(isinstance(e, CompactionStarted) for e in b.seen())


async def test_a_failed_automatic_compaction_does_not_fail_the_run() -> None:
    refused = ProviderError("no", reason="invalid_request", provider="p", status=400)
    full = say(LONG, usage=Usage(input=7_900, output=10))
    scripted = model(full, refused)
    async with bench(scripted, options=SessionOptions(compaction=CompactionPolicy())) as b:
        await talked(b)
        await b.session.prompt("three")
        await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 3


async def test_what_a_summary_costs_is_counted() -> None:
    summary = say("## Goal\nx", usage=Usage(input=70, output=7))
    async with bench(model(summary), options=MANUAL) as b:
        await talked(b)
        before = b.session.info.snapshot().usage.tokens
        await b.session.compact()
        await b.idle()
        after = b.session.info.snapshot().usage.tokens
        assert (after.input - before.input, after.output - before.output) == (70, 7)
