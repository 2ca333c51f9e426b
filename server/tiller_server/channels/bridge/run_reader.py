"""Meaning of the events of a session for its chat: a pure function from state and event to state and effects."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agent_core.channels.messaging.delivery.text_parts import shortened
from agent_core.channels.messaging.port import Outcome
from agent_core.channels.messaging.store.inbox import MESSAGE_ID_PREFIX
from agent_core.events import (
    Event,
    MessageEnded,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
    RunEnded,
    RunStarted,
    ToolEnded,
)
from agent_core.kernel.json import as_object, as_text
from agent_core.kernel.values import Value
from agent_core.messages import text_of

ENDED_RUNS: Final = 8
"""Ids of the last runs that are kept, for prompts whose acceptance was not recorded in time."""
PLAN_TOOL: Final = "plan"
REASONS: Final[Mapping[str, str]] = {
    "RateLimited": "the model's provider asks for a long pause",
    "AuthRequired": "no usable key for the model is configured",
    "ContextOverflow": "the conversation is too long for the model; start a new session",
    "ModelError": "the model or its provider failed",
    "TooManyDenials": "too many requests were denied",
    "CallsRepeated": "the model repeated the same calls",
    "BudgetExceeded": "its budget is used up",
}
"""Own texts for kinds of failures; the log has the details."""


class ShownRun(Value, frozen=True, kw_only=True):
    """The run that is going on."""

    run: str
    is_shown: bool
    """Whether it answers a message of the chat, or nobody's; runs of other front ends are not shown."""
    parts: tuple[str, ...] = ()
    """Texts of the model's messages that are complete."""
    plan: str | None = None
    """Hash and text of the plan that waits for an answer, with a space between."""


class ReaderState(Value, frozen=True, kw_only=True):
    """State of the reader of a session."""

    run: ShownRun | None = None
    ended: tuple[str, ...] = ()
    """The last runs that have ended."""


class RunShown(Value, frozen=True, kw_only=True):
    """Effect: the answer of a run begins."""

    run: str


class PromptTaken(Value, frozen=True, kw_only=True):
    """Effect: a prompt is in the conversation."""

    message_id: str
    run: str


class RunFinished(Value, frozen=True, kw_only=True):
    """Effect: a run has ended."""

    run: str
    text: str
    outcome: Outcome
    is_shown: bool


class PlanReady(Value, frozen=True, kw_only=True):
    """Effect: a plan waits for an answer."""

    run: str
    markdown: str
    sha256: str


class Resolved(Value, frozen=True, kw_only=True):
    """Effect: a permission request or a question needs no answer any more."""

    request: str
    option: str | None
    by: str


Effect = RunShown | PromptTaken | RunFinished | PlanReady | Resolved | PermissionRequest | Question


def consume(state: ReaderState, event: Event) -> tuple[ReaderState, Sequence[Effect]]:
    """Return the state after an event, and what follows from it."""
    match event:
        case RunStarted(run=run, message_id=message_id):
            return _started(state, str(run), message_id)
        case MessageEnded(role="user", message_id=str() as message_id, run=str() as run):
            return _joined(state, message_id, run)
        case RunEnded():
            return _ended(state, event)
        case MessageEnded() | ToolEnded():
            return _with_item(state, event), ()
        case _:
            return state, _dialog_effects(state, event)


def _with_item(state: ReaderState, event: MessageEnded | ToolEnded) -> ReaderState:
    """Return the state after a message of the model or the result of a tool."""
    run = state.run
    if run is None or run.run != event.run:
        return state
    match event:
        case MessageEnded(role="assistant", content=content) if text := text_of(content):
            return _with(state, replace(run, parts=(*run.parts, text)))
        case ToolEnded(name="plan", status="ok", details=details):
            plan = as_object(as_object(details).get(PLAN_TOOL))
            shown = f"{as_text(plan.get('sha256'))} {as_text(plan.get('markdown'))}"
            return _with(state, replace(run, plan=shown))
        case _:
            return state


def _dialog_effects(state: ReaderState, event: Event) -> Sequence[Effect]:
    match event:
        case PermissionRequested(request=request) | QuestionRequested(request=request):
            run = state.run
            # Requests of a run of another front end are answered there.
            is_foreign = run is not None and run.run == request.run and not run.is_shown
            return () if is_foreign else (request,)
        case PermissionResolved(request=request, option=option, by=by):
            return (Resolved(request=request, option=option, by=by),)
        case QuestionResolved(request=request, by=by, answers=answers):
            option = None if answers is None else "answered"
            return (Resolved(request=request, option=option, by=by),)
        case _:
            return ()


def is_ours(message_id: str | None) -> bool:
    """Return whether a prompt came from a chat."""
    return message_id is not None and message_id.startswith(MESSAGE_ID_PREFIX)


def live_text(state: ReaderState, growing: str, tool: str) -> str:
    """Return the text of a running answer: the messages so far, and a line about the running tool."""
    parts = () if state.run is None else state.run.parts
    line = f"_{shortened(' '.join(tool.split()), limit=100)} …_" if tool else ""
    return "\n\n".join(part for part in (*parts, growing, line) if part)


def _with(state: ReaderState, run: ShownRun | None) -> ReaderState:
    return ReaderState(run=run, ended=state.ended)


def _started(
    state: ReaderState, run: str, message_id: str | None
) -> tuple[ReaderState, Sequence[Effect]]:
    is_shown = message_id is None or is_ours(message_id)
    effects: list[Effect] = []
    if message_id is not None and is_ours(message_id):
        effects.append(PromptTaken(message_id=message_id, run=run))
    if is_shown:
        effects.append(RunShown(run=run))
    return _with(state, ShownRun(run=run, is_shown=is_shown)), effects


def _joined(state: ReaderState, message_id: str, run: str) -> tuple[ReaderState, Sequence[Effect]]:
    if not is_ours(message_id):
        return state, ()
    taken = PromptTaken(message_id=message_id, run=run)
    if state.run is None or state.run.run != run or state.run.is_shown:
        return state, (taken,)
    progress = replace(state.run, is_shown=True)
    return _with(state, progress), (taken, RunShown(run=run))


def _ended(state: ReaderState, event: RunEnded) -> tuple[ReaderState, Sequence[Effect]]:
    run = str(event.run)
    progress = state.run if state.run is not None and state.run.run == run else None
    outcome = outcome_of(event.status)
    parts = () if progress is None else progress.parts
    kind = None if event.error is None else event.error.kind
    line = line_of(event.status, kind, has_text=bool(parts))
    over = RunFinished(
        run=run,
        text="\n\n".join((*parts, line) if line else parts),
        outcome=outcome,
        is_shown=progress is not None and progress.is_shown,
    )
    effects: list[Effect] = [over]
    if progress is not None and progress.plan is not None and progress.is_shown:
        sha256, _, markdown = progress.plan.partition(" ")
        effects.append(PlanReady(run=run, markdown=markdown, sha256=sha256))
    return ReaderState(run=None, ended=(*state.ended, run)[-ENDED_RUNS:]), effects


def outcome_of(status: str) -> Outcome:
    """Return the outcome of a status of a run."""
    if status == "completed":
        return "completed"
    return "aborted" if status == "cancelled" else "failed"


def line_of(status: str, kind: str | None, *, has_text: bool) -> str:
    """Return the line about the end of a run; empty: its text is enough."""
    match status:
        case "completed":
            return "" if has_text else "Done; there is no text to show."
        case "cancelled":
            return "Stopped."
        case "interrupted":
            return "The agent was restarted during this answer. Send a message to go on."
        case "budget":
            return "Stopped: the budget of this run is used up."
        case "refused":
            return "Stopped: the model refused, or too many requests were denied."
        case _:
            reason = REASONS.get(kind or "", "an error occurred")
            return f"The run failed: {reason}. The log of Tiller has the details."
