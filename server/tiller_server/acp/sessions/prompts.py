"""Prompts of one client that are not answered yet, and which end of a run answers them. No I/O."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, get_args

from agent_core.events import (
    CompactionEnded,
    Event,
    MessageEnded,
    RunEnded,
    RunStarted,
    RunStatus,
    TurnEnded,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text
from tiller_server.acp.errors import AUTH_REQUIRED, INTERNAL_ERROR, AcpError

KEPT_RUNS: Final = 32
STATUSES: Final[Mapping[str, RunStatus]] = {name: name for name in get_args(RunStatus)}
STOP_REASONS: Final[Mapping[RunStatus, str]] = {
    "completed": "end_turn",
    "cancelled": "cancelled",
    "budget": "max_turn_requests",
    "refused": "refusal",
}
"""Stop reasons by how a run ended; any other end is an error."""


class PendingPrompt:
    """A prompt without an answer."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.run: str | None = None
        """Run that it began or joined; None: none yet."""
        self.former: str | None = None
        """Interrupted run that `run` continues; its events, which may come later, no longer concern the prompt."""
        self.accepted = asyncio.Event()
        """Set when the agent has answered it."""
        self.is_cancelled = False
        self.is_inserted_only = False
        """Whether it is answered when it is in the conversation, not by the end of its run."""
        self.is_compaction = False
        """Whether it asks for a compaction, whose end answers it."""
        self.queue_id = ""
        """Its id in the queue of the session; empty: it does not wait there."""
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The stop reason."""
        self.gap = asyncio.Event()
        """Set when events were missed, one of which may have ended it."""
        self.is_found = False
        """Whether it was in the conversation before the connection to the agent began."""
        self.inserted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Id of its message in the conversation."""

    def resolve(self, stop_reason: str) -> None:
        """Answer it, unless it is answered."""
        if not self.answer.done():
            self.answer.set_result("cancelled" if self.is_cancelled else stop_reason)

    def fail(self, error: AcpError) -> None:
        """Answer it with an error, unless it is answered; a cancelled one never fails."""
        if self.is_cancelled:
            self.resolve("cancelled")
        elif not self.answer.done():
            self.answer.set_exception(error)


class PromptTracker:
    """All prompts of a session."""

    def __init__(self) -> None:
        self._pending: list[PendingPrompt] = []
        self._ended: OrderedDict[str, str | AcpError] = OrderedDict()
        self._last_stop = ""

    @property
    def pending(self) -> tuple[PendingPrompt, ...]:
        """Prompts without an answer."""
        return tuple(one for one in self._pending if not one.answer.done())

    def add(self, message_id: str) -> PendingPrompt:
        """Record a prompt that is about to be sent."""
        prompt = PendingPrompt(message_id)
        self._pending.append(prompt)
        return prompt

    def remove(self, prompt: PendingPrompt) -> None:
        """Forget a prompt."""
        self._pending.remove(prompt)

    def joined(self, prompt: PendingPrompt, run: str) -> None:
        """Record the run of a prompt, which may have ended by now."""
        prompt.run = run
        end = self._ended.get(run)
        if end is not None:
            _settle(prompt, end)

    def continued(self, prompt: PendingPrompt, run: str, *, by: str) -> None:
        """Record that an interrupted run of a prompt is continued by another one, which may have ended by now."""
        prompt.former = run
        self.joined(prompt, by)

    def see(self, event: Event) -> None:
        """Follow an event; the end of a run answers its prompts."""
        match event:
            case RunStarted(run=run, message_id=message_id):
                self._last_stop = ""
                self._join(message_id, run)
            case MessageEnded(message_id=message_id) if message_id is not None:
                self._insert(event, message_id)
            case CompactionEnded(run=None):
                for prompt in self.pending:
                    if prompt.is_compaction:
                        _settle(prompt, end_of_compaction(event))
            case TurnEnded(stop_reason=stop_reason):
                self._last_stop = stop_reason
            case RunEnded():
                self._run_ended(event)
            case _:
                pass

    def _run_ended(self, event: RunEnded) -> None:
        end = end_of_run(event, last_stop=self._last_stop)
        self._ended[event.run] = end
        if len(self._ended) > KEPT_RUNS:
            _ = self._ended.popitem(last=False)
        for prompt in self.pending:
            # One that was sent again continues the run that its first process did not end.
            is_continued = event.status == "interrupted" and not prompt.accepted.is_set()
            if prompt.run == event.run and not is_continued:
                _settle(prompt, end)

    def miss(self, *, is_compacting: bool) -> None:
        """Record that events were missed: the agent has to be asked for the end of each prompt.

        Args:
            is_compacting: Whether a compaction is going on after them.
        """
        for prompt in self.pending:
            if not prompt.is_compaction:
                prompt.gap.set()
            elif prompt.accepted.is_set() and not is_compacting:
                prompt.resolve("end_turn")

    def cancel_all(self) -> None:
        """Mark all prompts as cancelled; the end of their run answers them."""
        for prompt in self.pending:
            prompt.is_cancelled = True

    def end_all(self, error: AcpError) -> None:
        """Answer all prompts: nothing more will come."""
        for prompt in self.pending:
            prompt.fail(error)

    def _insert(self, event: MessageEnded, message_id: str) -> None:
        if event.run is not None:
            self._join(message_id, event.run)
        for prompt in self.pending:
            if prompt.message_id == message_id and not prompt.inserted.done():
                prompt.inserted.set_result(event.entry or event.item)

    def _join(self, message_id: str | None, run: str) -> None:
        for prompt in self.pending:
            if message_id is not None and prompt.message_id == message_id and run != prompt.former:
                prompt.run = run


def end_of_run(event: RunEnded, *, last_stop: str) -> str | AcpError:
    """Return the stop reason or the error for the end of a run.

    Args:
        event: The end.
        last_stop: Stop reason of the last answer of the model.
    """
    if event.status == "completed" and last_stop == "length":
        return "max_tokens"
    return end_of(
        event.status,
        message=event.error.message if event.error is not None else "",
        kind=event.error.kind if event.error is not None else "",
        is_retryable=event.error is not None and event.error.retryable,
    )


def end_of_compaction(event: CompactionEnded) -> str | AcpError:
    """Return the stop reason or the error for the end of a compaction that is no part of a run."""
    if event.error is not None:
        data: JsonObject = {"kind": event.error.kind, "retryable": event.error.retryable}
        return AcpError(INTERNAL_ERROR, event.error.message, data)
    return "cancelled" if event.aborted else "end_turn"


def end_of(
    status: RunStatus, *, message: str = "", kind: str = "", is_retryable: bool = False
) -> str | AcpError:
    """Return the stop reason or the error for the end of a run."""
    if status in STOP_REASONS:
        return STOP_REASONS[status]
    data: JsonObject = {"kind": kind or "Internal", "retryable": is_retryable}
    code = AUTH_REQUIRED if kind == "AuthRequired" else INTERNAL_ERROR
    text = message or "the run was interrupted, because the process that ran it ended"
    return AcpError(code, text, data)


def end_of_result(result: JsonObject) -> str | AcpError:
    """Return the stop reason or the error for a result of `agent/prompt`."""
    error = as_object(result.get("error"))
    status = result.get("status")
    return end_of(
        STATUSES.get(as_text(status), "failed"),
        message=as_text(error.get("message")),
        kind=as_text(error.get("kind")),
        is_retryable=error.get("retryable") is True,
    )


def _settle(prompt: PendingPrompt, end: str | AcpError) -> None:
    if isinstance(end, AcpError):
        prompt.fail(end)
    else:
        prompt.resolve(end)
