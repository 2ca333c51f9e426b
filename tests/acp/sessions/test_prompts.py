"""Which end of a run answers a prompt that was sent again after its daemon died."""

import pytest

from agent_core.events import ChangeCounts, RunEnded, RunStarted, RunStatus, UsageReport
from agent_core.kernel import MessageId, RunId
from agent_core.messages import Usage
from tiller_server.acp.errors import AcpError
from tiller_server.acp.sessions.prompts import PromptTracker
from tiller_server.acp.version2 import Version2Updates

FIRST, SECOND = RunId("run-1"), RunId("run-2")
PROMPT = MessageId("prompt-1")
USAGE = UsageReport(tokens=Usage(), context_used=None, context_size=1)


def started(run: RunId, message: MessageId | None = None) -> RunStarted:
    return RunStarted(run=run, message_id=message, model="test/model")


def ended(run: RunId, status: RunStatus) -> RunEnded:
    return RunEnded(run=run, status=status, usage=USAGE, changes=ChangeCounts())


async def test_late_events_of_an_interrupted_run_do_not_answer_a_prompt_that_another_run_continues() -> (
    None
):
    tracker = PromptTracker()
    prompt = tracker.add(PROMPT)
    tracker.continued(prompt, FIRST, by=SECOND)
    prompt.accepted.set()
    # Replayed to the new connection after the answers to its requests.
    tracker.see(started(FIRST, PROMPT))
    tracker.see(ended(FIRST, "interrupted"))
    assert not prompt.answer.done()
    tracker.see(started(SECOND))
    tracker.see(ended(SECOND, "completed"))
    assert prompt.answer.result() == "end_turn"


async def test_an_interrupted_run_that_none_continues_answers_its_prompt_with_an_error() -> None:
    tracker = PromptTracker()
    prompt = tracker.add(PROMPT)
    tracker.see(started(FIRST, PROMPT))
    prompt.accepted.set()
    tracker.see(ended(FIRST, "interrupted"))
    with pytest.raises(AcpError, match="the process that ran it ended"):
        prompt.answer.result()


def states(form: Version2Updates, *events: RunStarted | RunEnded) -> list[str]:
    """Return the states that version 2 reports for events, `idle` with its stop reason."""
    updates = [update for event in events for update in form.live(event, [])]
    return [f"{one['state']} {one.get('stopReason', '')}".strip() for one in updates]


def test_an_interrupted_run_is_no_error_for_a_client_whose_prompt_is_sent_again() -> None:
    form = Version2Updates("client")
    form.restart({})
    _ = form.state(is_prompted=True)
    assert states(form, ended(FIRST, "interrupted")) == []
    assert states(form, started(SECOND), ended(SECOND, "completed")) == [
        "running",
        "idle end_turn",
    ]
    assert states(form, ended(SECOND, "interrupted")) == ["idle error"]


def test_an_interrupted_run_of_another_client_is_an_error() -> None:
    form = Version2Updates("client")
    form.restart({})
    assert states(form, ended(FIRST, "interrupted")) == ["idle error"]
