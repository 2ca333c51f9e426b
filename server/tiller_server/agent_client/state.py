"""State of a session of the daemon, from a snapshot and the events after it."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from agent_core.events import (
    BackgroundEnded,
    BackgroundInfo,
    BackgroundListening,
    BackgroundStarted,
    BashEnded,
    BashStarted,
    ChangeCounts,
    ChangesUpdated,
    CompactionEnded,
    CompactionStarted,
    Event,
    MessageDelta,
    PermissionRequest,
    PermissionRequested,
    Question,
    QuestionRequested,
    QueueChanged,
    QueueItem,
    RunEnded,
    RunStarted,
    SessionConfig,
    SessionConfigured,
    SessionTitle,
    SessionUsage,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskUpdated,
    ToolRunning,
    UiTitle,
    UsageReport,
)
from agent_core.kernel import ItemId, JsonObject, RunId, TurnId
from agent_core.kernel.json import as_object, is_object
from agent_core.messages import Text, text_of
from tiller_server.agent_client.events import asked_of, value_of


class SharedState(msgspec.Struct, kw_only=True):
    """State of the session now, from its snapshot and the events after it."""

    config: SessionConfig
    usage: UsageReport
    changes: ChangeCounts
    queue: tuple[QueueItem, ...]
    title: str | None
    is_busy: bool
    """Whether a run, a compaction or a command of the user is active."""
    extension_title: str = ""
    background: tuple[BackgroundInfo, ...] = ()
    """Background commands that run, oldest first."""
    tasks: tuple[TaskInfo, ...] = ()
    """Tasks that run, were lost or ended last."""

    @classmethod
    def of(cls, snapshot: JsonObject) -> "SharedState":
        """Return the state of a snapshot of the wire.

        Raises:
            msgspec.ValidationError: It is none.
        """
        title = snapshot.get("title")
        queue = snapshot.get("queue")
        items = queue if isinstance(queue, list) else []
        running, tasks = snapshot.get("background"), snapshot.get("tasks")
        return cls(
            config=value_of(snapshot.get("config"), SessionConfig),
            usage=value_of(snapshot.get("usage"), UsageReport),
            changes=value_of(snapshot.get("changes"), ChangeCounts),
            queue=tuple(value_of(one, QueueItem) for one in items),
            title=title if isinstance(title, str) else None,
            is_busy="activity" in snapshot,
            background=tuple(
                value_of(one, BackgroundInfo)
                for one in (running if isinstance(running, list) else [])
            ),
            tasks=tuple(
                value_of(one, TaskInfo) for one in (tasks if isinstance(tasks, list) else [])
            ),
        )

    def see(self, event: Event) -> None:
        """Update it from an event."""
        match event:
            case SessionConfigured(config=config):
                self.config = config
            case SessionUsage(usage=usage):
                self.usage = usage
            case ChangesUpdated():
                self.changes = ChangeCounts(
                    files=event.files,
                    additions=event.additions,
                    deletions=event.deletions,
                    unreviewed=event.unreviewed,
                )
            case QueueChanged(queue=queue):
                self.queue = queue
            case SessionTitle(title=title):
                self.title = title
            case RunStarted() | BashStarted() | CompactionStarted():
                self.is_busy = True
            case RunEnded() | BashEnded() | CompactionEnded(run=None):
                self.is_busy = False
            case UiTitle(view=view):
                self.extension_title = str(view.get("text") or "")
            case _:
                self._follow_background(event)

    def _follow_background(self, event: Event) -> None:
        match event:
            case TaskCreated(task=task) | TaskUpdated(task=task) | TaskEnded(task=task):
                self.tasks = (*(one for one in self.tasks if one.id != task.id), task)
            case BackgroundStarted(command=command):
                self.background = (*self.background, command)
            case BackgroundListening(id=id_, ports=ports):
                self.background = tuple(
                    msgspec.structs.replace(one, ports=ports) if one.id == id_ else one
                    for one in self.background
                )
            case BackgroundEnded(id=id_):
                self.background = tuple(one for one in self.background if one.id != id_)
            case _:
                pass

    def events_since_stored(self, snapshot: JsonObject) -> Sequence[Event]:
        """Return events that bring a reader from the stored part of the session to this state.

        Args:
            snapshot: The snapshot that the state was made of.
        """
        events: list[Event] = [SessionUsage(usage=self.usage)]
        run = as_object(snapshot.get("run"))
        if run:
            of_run = RunId(str(run.get("id")))
            model = self.config.model or ""
            events.append(RunStarted(run=of_run, message_id=None, model=model))
            items = run.get("items")
            for item in items if isinstance(items, list) else []:
                events.extend(_unfinished(as_object(item), of_run))
        if self.queue:
            events.append(QueueChanged(queue=self.queue))
        pending = snapshot.get("pending")
        for one in pending if isinstance(pending, list) else []:
            with suppress(msgspec.ValidationError, ValueError):
                events.append(_requested(asked_of(one)))
        return events


def _requested(asked: PermissionRequest | Question) -> Event:
    if isinstance(asked, PermissionRequest):
        return PermissionRequested(run=asked.run, request=asked)
    return QuestionRequested(run=asked.run, request=asked)


def _unfinished(item: JsonObject, run: RunId) -> Sequence[Event]:
    """Return events for what an item of a run shows already; none when it has ended, and stands in the stored part."""
    if "turn" in item:
        return ()
    identity, turn = ItemId(str(item.get("item"))), TurnId("")
    content = item.get("content")
    is_answer = item.get("kind") == "message" and item.get("role") == "assistant"
    if is_answer and isinstance(content, list):
        text = text_of(tuple(value_of(one, Text) for one in content))
        return (MessageDelta(run=run, turn=turn, item=identity, text=text),)
    given = item.get("input")
    if item.get("kind") == "tool" and is_object(given):
        name = str(item.get("name"))
        return (ToolRunning(run=run, turn=turn, item=identity, title=name, input=given),)
    return ()
