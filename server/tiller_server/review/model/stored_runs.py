"""Runs of a review that a stored session has, so that an interrupted review continues where it ended. Pure."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from agent_core.kernel import JsonObject, MessageId, RunId
from agent_core.kernel.json import as_object
from agent_core.messages import AssistantMessage, ToolCall, Usage
from agent_core.session.history.entries import RUN
from agent_core.session.runs.recovery import FINISHED
from agent_core.transcript.entries import AnyEntry, CustomEntry, MessageEntry
from tiller_server.review.model.report_tool import TOOL


class StoredRun(Struct, kw_only=True):
    """A run and those that continued it, as one."""

    run: RunId
    """The last of them."""
    status: str = "started"
    """Status in which the last one ended; `started`: its process ended first."""
    text: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    turns: int = 0
    reports: list[JsonObject] = msgspec.field(default_factory=list[JsonObject])
    """Arguments of the calls of `report_finding`, also of those that got no result."""

    @property
    def is_finished(self) -> bool:
        """Return whether it left nothing undone."""
        return self.status in FINISHED


def message_id_of(prompt: str) -> MessageId:
    """Return the id under which a prompt of a review is sent, so that it is recognised in a stored session."""
    return MessageId(f"review-{sha256(prompt.encode(errors='surrogatepass')).hexdigest()[:32]}")


def stored_runs(entries: Sequence[AnyEntry]) -> Mapping[MessageId, StoredRun]:
    """Return the runs of a session, by the ids of the prompts that began them."""
    by_prompt: dict[MessageId, StoredRun] = {}
    by_run: dict[str, StoredRun] = {}
    current: StoredRun | None = None
    for entry in entries:
        if isinstance(entry, CustomEntry) and entry.custom_type == RUN:
            data = as_object(entry.data)
            run, status = str(data.get("run")), str(data.get("status"))
            if status != "started":
                if run in by_run:
                    by_run[run].status = status
                current = None
                continue
            message_id = data.get("messageId")
            current = by_run.get(str(data.get("retryOf"))) or StoredRun(run=RunId(run))
            current.run, current.status = RunId(run), status
            by_run[run] = current
            if isinstance(message_id, str):
                by_prompt[MessageId(message_id)] = current
        elif current is not None and isinstance(entry, MessageEntry):
            _add(current, entry.message)
    return by_prompt


def _add(run: StoredRun, message: object) -> None:
    if not isinstance(message, AssistantMessage):
        return
    run.text = message.text or run.text
    run.usage = run.usage.plus(message.usage)
    run.turns += 1
    run.reports += [
        call.arguments
        for call in message.content
        if isinstance(call, ToolCall) and call.name == TOOL and call.arguments_error is None
    ]
