"""State of a task, from the entries of its session: pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from agent_core.kernel import JsonObject, MessageId, RunId
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, text_of
from agent_core.messages.codec import decode_user_content
from agent_core.session.history.entries import QUEUE, RUN
from agent_core.session.input.queue import retry_id
from agent_core.session.runs.recovered_state import recover_state
from agent_core.transcript.cold_entries import preview_of, preview_text
from agent_core.transcript.entries import AnyEntry, CustomEntry, MessageEntry
from tiller_server.web.tasks.models import ApiTaskState

REASONS: Final[Mapping[str, tuple[ApiTaskState, str | None]]] = {
    "completed": ("done", None),
    "cancelled": ("cancelled", "The run was cancelled."),
    "failed": ("failed", "The run failed."),
    "interrupted": ("failed", "The run was interrupted by the end of its process."),
    "budget": ("failed", "The budget of the session is used up."),
    "refused": ("failed", "The run ended because its requests were refused."),
}
"""State and reason of a task, by the status of its run."""
QUEUED: Final = "The prompt waits in the queue of the session."
REMOVED: Final = "The prompt was removed from the queue of the session."
UNSENT: Final = "The prompt was not accepted; send the request again with the same Idempotency-Key."


class StoredTask(Value, frozen=True, kw_only=True):
    """State of a task in its session file."""

    run: RunId | None = None
    """The newest run that worked on it."""
    state: ApiTaskState
    """`running` also when its process died: the end of the run is missing."""
    reason: str | None = None
    prompt: str = ""
    queue_id: str | None = None
    """Id in the queue, of a prompt that waits there."""
    answer: str | None = None


def stored_task(entries: Sequence[AnyEntry], message: MessageId) -> StoredTask:
    """Return the state of the task whose prompt has this id.

    Args:
        entries: All entries of the session, with their bodies.
        message: Id of the prompt.
    """
    place = _placed(entries, message)
    prompt = _prompt_of(entries, message)
    if place.run is None:
        if place.removed == "refused" or not place.is_stored:
            return StoredTask(state="failed", reason=UNSENT)
        if place.removed is not None:
            return StoredTask(state="cancelled", reason=REMOVED, prompt=prompt)
        return StoredTask(state="queued", reason=QUEUED, prompt=prompt, queue_id=place.queue_id)
    run = place.run
    retries = recover_state(entries).runs
    while (again := retries.get(retry_id(run))) is not None:
        run = again
    return _ended(entries, run, prompt=prompt)


class _Place(Struct):
    """Where the prompt of a task is: in the queue, in a run, or removed."""

    queue_id: str | None = None
    run: RunId | None = None
    removed: str | None = None
    """Why it left the queue, when no run took it."""

    @property
    def is_stored(self) -> bool:
        return self.queue_id is not None or self.run is not None


def _placed(entries: Sequence[AnyEntry], message: MessageId) -> _Place:
    place = _Place()
    for entry in entries:
        match entry:
            case CustomEntry(
                custom_type=kind, data={"messageId": str(id_), "run": str(run), "status": "started"}
            ) if kind == RUN and id_ == message:
                place.run = RunId(run)
            case CustomEntry(custom_type=kind, data=data) if kind == QUEUE:
                _follow_queue(place, as_object(data), message)
            case _:
                pass
    return place


def _follow_queue(place: _Place, data: JsonObject, message: MessageId) -> None:
    match data:
        case {"op": "put", "messageId": str(id_), "queueId": str(queue_id)} if id_ == message:
            place.queue_id, place.removed = queue_id, None
        case {"op": "take", "queueId": str(queue_id), **more} if queue_id == place.queue_id:
            run = more.get("run")
            if isinstance(run, str):
                place.run = RunId(run)
            else:
                place.removed = str(more.get("why"))
        case {"op": "edit", "removed": [*removed]} if place.queue_id in removed:
            place.removed = "removed"
        case _:
            pass


def _ended(entries: Sequence[AnyEntry], run: RunId, *, prompt: str) -> StoredTask:
    begun, status = False, None
    last: AssistantMessage | None = None
    for entry in entries:
        match entry:
            case CustomEntry(custom_type=kind, data=data) if kind == RUN:
                mark = as_object(data)
                if mark.get("run") == run and mark.get("status") == "started":
                    begun = True
                elif mark.get("run") == run:
                    status = str(mark.get("status"))
                    break
            case MessageEntry(message=AssistantMessage() as answer) if begun:
                last = answer
            case _:
                pass
    if status is None:
        return StoredTask(run=run, state="running", prompt=prompt)
    state, reason = REASONS.get(status, ("failed", f"The run ended as {status}."))
    if state == "failed" and last is not None and last.error:
        reason = last.error
    answer = last.text if state == "done" and last is not None else None
    return StoredTask(run=run, state=state, reason=reason, prompt=prompt, answer=answer)


def _prompt_of(entries: Sequence[AnyEntry], message: MessageId) -> str:
    """Return the beginning of a prompt: it stands in the queue, or just before the first entry of its run."""
    before = ""
    for entry in entries:
        match entry:
            case CustomEntry(custom_type=kind, data={"messageId": str(id_), **more}) if (
                id_ == message
            ):
                if kind != QUEUE:
                    return before
                return preview_text(text_of(decode_user_content(more.get("content"))[0]))
            case MessageEntry():
                before = preview_of(entry)
            case _:
                pass
    return before
