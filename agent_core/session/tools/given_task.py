"""A task of a session, what its session says of it, and how its end is written and reported."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import (
    Event,
    RunResult,
    RunStarted,
    TaskInfo,
    TaskState,
    ToolEnded,
    ToolRunning,
    ToolStarted,
    TurnEnded,
)
from agent_core.kernel import JsonValue, ToolCallId
from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import cut_bytes, one_line
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, CustomMessage, Text, Usage
from agent_core.resources.agents import NOT_FOR_TASKS, AgentDefinition
from agent_core.session.history.entries import TASK, EntryFactory, task_entry, used_entry
from agent_core.session.runs.recovered_state import RecoveredTask
from agent_core.session.runs.recovery import last_run
from agent_core.storage.port import StoredSession
from agent_core.tools.port import TaskOrder
from agent_core.transcript.entries import AnyEntry, MessageEntry

TOOL: Final = "task"
"""Name of the tool that starts tasks."""
REPORT_BYTES: Final = 16_384
"""How much of a report the model gets; the rest stays in the session of the task."""
TITLE_CHARS: Final = 80
LEAD: Final = "[Report of Tiller, not of the user]"
CUT_OFF: Final = frozenset({"started", "interrupted", "cancelled"})
"""Status of the last run in the file of a task whose process ended in the middle of it."""
ENDED: Final[Mapping[str, TaskState]] = {
    "completed": "completed",
    "budget": "budget",
    "cancelled": "cancelled",
}
"""States of tasks by the status of their run; any other status is a failure."""


class TaskOutcome(Value, frozen=True, kw_only=True):
    """Result of a task."""

    state: TaskState
    text: str = ""
    """The last words of its model."""
    error: str | None = None


class GivenTask(Struct, kw_only=True):
    """A task while the session is open."""

    info: TaskInfo
    call: ToolCallId
    order: TaskOrder
    attempt: int = 1
    is_awaited: bool
    """Whether the call of the tool waits for the end."""
    model: tuple[str, str] = ("", "")
    """Provider and id of the model that answered last."""
    spent: Usage = Usage()
    """Usage of this attempt."""
    used: Usage = Usage()
    """Usage of all attempts."""
    wanted: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when it is to stop."""
    stopped_as: TaskState = "cancelled"
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """It has ended, and that is in the file."""
    is_ending: bool = False
    """Whether it is decided how the model gets the report."""
    readers: int = 0
    """How many calls of tools wait for the report, besides the one that started the task."""
    is_unchanged: bool = False
    """Whether its worktree was removed because nothing was changed in it."""
    note: str = ""
    """Sentence for the model about its worktree once it has ended; empty: it has none."""
    message: str = ""
    """The message to the model; empty: not read from the task's session yet."""
    report: str = ""
    """The part of it that the task wrote, for people."""

    def settle_report(self, text: str) -> None:
        """Set the report by the last message of the task."""
        text = text.strip()
        body = cut_bytes(text, REPORT_BYTES)
        self.report = f"{body}\n[The report is cut.]" if len(body) < len(text) else body
        self.message = _message_of(self.info, self.report, self.note)


def follow(one: GivenTask, event: Event) -> None:
    """Keep what an event of its session says about a task."""
    info = one.info
    match event:
        case RunStarted(model=model):
            provider, _, id_ = model.partition("/")
            one.model = provider, id_
        case ToolStarted(title=title) | ToolRunning(title=title):
            one.info = replace(info, activity=one_line(title)[:TITLE_CHARS])
        case ToolEnded():
            one.info = replace(info, tool_calls=info.tool_calls + 1, activity="")
        case TurnEnded():
            one.info = replace(info, turns=info.turns + 1)
        case _:
            pass


def tools_for(agent: AgentDefinition, active: Sequence[str]) -> tuple[str, ...]:
    """Return the tools of a task: never one that the session which gave it does not have.

    Raises:
        ToolError: None is left.
    """
    found = tuple(
        name
        for name in active
        if name not in NOT_FOR_TASKS and (agent.tools is None or name in agent.tools)
    )
    if not found:
        message = f"The agent {agent.name!r} has none of the tools that are active here; choose another agent."
        raise ToolError(message)
    return found


def named(info: TaskInfo) -> str:
    """Return how people and models know a task."""
    return f"{info.id} ({info.description})"


def with_usage(info: TaskInfo, used: Usage) -> TaskInfo:
    """Return a task that has used something."""
    return replace(info, tokens=used.total, usd=None if used.cost is None else used.cost.total)


def started_entry(one: GivenTask) -> EntryFactory:
    """Write that a task was started."""
    data: dict[str, JsonValue] = {
        "op": "started",
        "id": one.info.id,
        "session": one.info.session,
        "call": one.call,
        "background": one.info.background,
        "attempt": one.attempt,
        "order": msgspec.to_builtins(one.order),
        "worktree": one.info.worktree,
    }
    return task_entry(data)


def end_entries(one: GivenTask) -> Sequence[EntryFactory]:
    """Write how a task ended and what it used."""
    report = "result" if one.is_awaited else "message"
    ended = task_entry(
        {
            "op": "ended",
            "id": one.info.id,
            "state": one.info.state,
            "report": report,
            "unchanged": one.is_unchanged,
        }
    )
    if one.spent == Usage():
        return (ended,)
    provider, model = one.model
    return (ended, used_entry("task", provider=provider, model=model, usage=one.spent))


def report_message(one: GivenTask, *, at_ms: int) -> CustomMessage:
    """Create the message that tells the model of the end of a task."""
    text = one.message
    if one.readers:
        text = f"Task {named(one.info)} has ended ({one.info.state}). Its report is the result of your call; task_result returns it again."
    return CustomMessage(
        custom_type=TASK,
        content=(Text(text=f"{LEAD} {text}"),),
        # Events have told people already.
        display=False,
        details={"id": one.info.id, "attempt": one.attempt},
        at_ms=at_ms,
    )


def _message_of(info: TaskInfo, report: str, note: str) -> str:
    how = {
        "completed": "completed",
        "failed": f"failed: {info.error or 'its run did not end well'}",
        "cancelled": "was stopped before it was done",
        "budget": "stopped at its budget before it was done",
        "lost": "was interrupted when Tiller was closed; the user can continue it",
    }[info.state]
    last = "Its report:" if info.state == "completed" else "Its last words:"
    said = f"\n{last}\n{report}" if report else " It reported nothing."
    report = f"Task {named(info)} {how}.{said}"
    return f"{report}\n{note}" if note else report


def outcome_of(result: RunResult | None) -> TaskOutcome:
    """Return the result of a task by that of its run."""
    if result is None:
        return TaskOutcome(state="failed", error="its run ended without a result")
    state: TaskState = ENDED.get(result.status, "failed")
    error = None if result.error is None else result.error.message
    return TaskOutcome(state=state, text=result.text, error=error)


def restored_task(one: RecoveredTask) -> GivenTask:
    """Return a task of the session file. One without an end there counts as lost until its own file says more."""
    info = TaskInfo(
        id=one.id,
        session=one.session,
        item=None,
        description=one.order.description,
        preset=one.order.preset,
        state=one.state or "lost",
        background=one.background,
        started_ms=one.started_ms,
        worktree=None if one.is_unchanged else one.worktree,
    )
    task = GivenTask(
        info=info,
        call=one.call,
        order=one.order,
        attempt=one.attempt,
        is_awaited=False,
        is_unchanged=one.is_unchanged,
    )
    task.over.set()
    return task


def calls_of_tasks(path: Sequence[AnyEntry]) -> Sequence[ToolCallId]:
    """Return the calls of the last answer of a branch that start tasks, in order."""
    for entry in reversed(path):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return [call.id for call in entry.message.tool_calls if call.name == TOOL]
    return ()


def last_outcome(stored: StoredSession) -> TaskOutcome:
    """Return what became of the newest run of a task by its own file."""
    text = ""
    for entry in stored.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            text = entry.message.text or text
    last = last_run(stored.entries)
    # A run that was cut off with its process can be continued.
    if last is None or last.status in CUT_OFF:
        return TaskOutcome(state="lost", text=text)
    return TaskOutcome(state=ENDED.get(last.status, "failed"), text=text)
