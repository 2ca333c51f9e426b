"""A run that was interrupted or failed goes on without the user's words being said twice."""

from collections.abc import Sequence

import anyio
import pytest

from agent_core.events import Notice, RunEnded, RunStarted
from agent_core.kernel import MessageId, RunId
from agent_core.kernel.errors import ProviderError, RunMismatch, RunNotActive, SessionBusy
from agent_core.messages import ToolResultMessage, UserMessage, text_of
from agent_core.session import Receipt
from agent_core.session.runs.recovery import INTERRUPTED
from agent_core.transcript.entries import AnyEntry, CustomEntry
from tests.support.session.held_log import held
from tests.support.session.scripted_model import Gate, ScriptedModel, Turn, both, call, say
from tests.support.session.sessions import Bench, bench, words
from tests.support.workspace.tools import Hold, echo


async def entered(event: anyio.Event) -> None:
    with anyio.fail_after(5):
        await event.wait()


def said(b: Bench) -> list[str]:
    return [words(one) for one in b.messages]


def statuses(entries: Sequence[AnyEntry]) -> list[str]:
    found = [one.data for one in entries if isinstance(one, CustomEntry)]
    return [str(data["status"]) for data in found if isinstance(data, dict) and "status" in data]


async def interrupted(*turns: Turn, queued: str = "") -> tuple[Receipt, tuple[AnyEntry, ...]]:
    """Run until the last turn's gate is reached, and give what is in the file at that moment."""
    log, opened = await held()
    gate = Gate()
    async with bench(
        ScriptedModel([*turns, (gate, *say("never"))]), opened=opened, tools=[echo()]
    ) as b:
        receipt = await b.session.prompt("go", message_id=MessageId("m1"))
        await entered(gate.reached)
        if queued:
            await b.session.follow_up(queued)
        return receipt, tuple(log.written)


async def test_an_interrupted_run_is_ended_once_in_the_file_and_told_to_the_first_who_listens() -> (
    None
):
    first, left = await interrupted(call("echo"))
    for _ in range(3):
        log, opened = await held(left)
        async with bench(ScriptedModel(), opened=opened) as b:
            seen = b.seen()
            result = await b.session.wait(first.run or RunId(""))
        if left == tuple(log.written):
            continue
        left = tuple(log.written)
        (ended,) = [e for e in seen if isinstance(e, RunEnded)]
        assert (ended.run, ended.status) == (first.run, "interrupted")
        assert (ended.cause, ended.resumable) == ("daemonRestart", True)
        assert [type(e) for e in seen][:2] == [RunEnded, Notice]
        assert result is not None
        assert result.status == "interrupted"
    assert statuses(left) == ["started", "interrupted"]
    last = left[-1]
    assert isinstance(last, CustomEntry)
    assert isinstance(last.data, dict)
    assert (last.data["cause"], last.data["resumable"]) == ("daemonRestart", True)


async def test_a_retry_goes_on_with_the_model_and_says_nothing_again() -> None:
    first, left = await interrupted(call("echo", {"text": "x"}))
    log, opened = await held(left)
    assert first.run is not None
    async with bench(ScriptedModel([say("done")]), opened=opened) as b:
        receipt = await b.session.retry(first.run)
        assert receipt.accepted == "started"
        assert receipt.run not in {None, first.run}
        await b.idle()
        assert said(b) == ["go", "", "echo:x", "done"]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == [
            "interrupted",
            "completed",
        ]
        again = await b.session.retry(first.run)
        assert (again.accepted, again.run) == ("duplicate", receipt.run)
    assert statuses(log.written) == ["started", "interrupted", "started", "completed"]
    _, reopened = await held(log.written)
    async with bench(ScriptedModel(), opened=reopened) as b:
        again = await b.session.retry(first.run)
        assert (again.accepted, again.run) == ("duplicate", receipt.run)


async def test_calls_without_a_result_have_one_before_the_retry_asks_the_model() -> None:
    log, opened = await held()
    hold = Hold()
    model = ScriptedModel([both(call("hold", id="1"), call("hold", id="2"))])
    async with bench(model, opened=opened, tools=[hold.tool]) as b:
        first = await b.session.prompt("go")
        await entered(hold.entered)
        left = tuple(log.written)
    _, again = await held(left)
    async with bench(ScriptedModel([say("done")]), opened=again) as b:
        await b.session.retry(first.run or RunId(""))
        await b.idle()
        results = [one for one in b.messages if isinstance(one, ToolResultMessage)]
        assert [(one.call_id, text_of(one.content)) for one in results] == [
            ("1", INTERRUPTED),
            ("2", INTERRUPTED),
        ]
        assert len([one for one in b.messages if isinstance(one, UserMessage)]) == 1


async def test_a_run_whose_answer_was_whole_is_complete_without_asking_again() -> None:
    log, opened = await held()
    async with bench(ScriptedModel([say("all done")]), opened=opened) as b:
        first = await b.session.prompt("go")
        await b.idle()
    left = [one for one in log.written if statuses([one]) != ["completed"]]
    _, again = await held(left)
    async with bench(ScriptedModel(), opened=again) as b:
        receipt = await b.session.retry(first.run or RunId(""))
        result = await b.session.wait(receipt.run or RunId(""))
        assert result is not None
        assert (result.status, result.text) == ("completed", "all done")
        assert said(b) == ["go", "all done"]


async def test_words_that_waited_are_said_when_the_run_goes_on() -> None:
    first, left = await interrupted(queued="and then?")
    _, opened = await held(left)
    async with bench(ScriptedModel([say("one"), say("two")]), opened=opened) as b:
        assert b.session.queue.paused
        await b.session.retry(first.run or RunId(""))
        await b.idle()
        assert said(b) == ["go", "one", "and then?", "two"]


async def test_a_failed_run_can_be_retried_and_an_ended_one_cannot() -> None:
    error = ProviderError("no such key", reason="auth", provider="scripted")
    async with bench(ScriptedModel([error, say("ok")])) as b:
        first = await b.session.prompt("go")
        await b.idle()
        second = await b.session.retry(first.run or RunId(""))
        await b.idle()
        assert next(words(m) for m in b.model.requests[-1].messages) == "go"
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["failed", "completed"]
        with pytest.raises(RunNotActive, match="left nothing undone"):
            await b.session.retry(second.run or RunId(""))


async def test_only_the_newest_run_is_retried_and_only_when_nothing_goes_on() -> None:
    gate = Gate()
    error = ProviderError("no such key", reason="auth", provider="scripted")
    async with bench(ScriptedModel([error, (gate, *say("ok"))])) as b:
        first = await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        await entered(gate.reached)
        with pytest.raises(SessionBusy):
            await b.session.retry(first.run or RunId(""))
        gate.release()
        await b.idle()
        for run in (first.run or RunId(""), RunId("never")):
            with pytest.raises(RunMismatch, match="newest run"):
                await b.session.retry(run)


async def test_two_retries_at_once_are_one_run() -> None:
    first, left = await interrupted()
    _, opened = await held(left)
    receipts: list[Receipt] = []
    async with bench(ScriptedModel([say("done")]), opened=opened) as b:

        async def retry() -> None:
            receipts.append(await b.session.retry(first.run or RunId("")))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(retry)
        await b.idle()
        assert sorted(one.accepted for one in receipts) == ["duplicate", "duplicate", "started"]
        assert len([e for e in b.seen() if isinstance(e, RunStarted)]) == 1
