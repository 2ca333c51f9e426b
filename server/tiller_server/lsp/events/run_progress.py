"""A run as one line of work-done progress: its activity, the use of its context, its cost."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from agent_core.events import (
    CompactionStarted,
    EditApplied,
    Event,
    EventSubscription,
    RetryStarted,
    RunEnded,
    SessionUsage,
    ThoughtStarted,
    ToolEnded,
    ToolRunning,
    ToolStarted,
    UsageReport,
)
from agent_core.events.values import ChangeCounts
from agent_core.kernel import RunId
from agent_core.session import AgentSession
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection

REPORT_EVERY_S: Final = 0.5
TITLE: Final = "Tiller"
KILO: Final = 1000
SHOWN: Final = (
    ToolStarted,
    ToolRunning,
    ToolEnded,
    ThoughtStarted,
    EditApplied,
    SessionUsage,
    RetryStarted,
    CompactionStarted,
    RunEnded,
)
"""The events that change the line of a run, or end it."""


class ProgressLine(Protocol):
    """Where a run is shown."""

    def begin(self, title: str, *, message: str | None = None, cancellable: bool = False) -> None:
        """Show that it has begun."""
        ...

    def report(self, message: str) -> None:
        """Show what it does."""
        ...

    def end(self, message: str | None = None) -> None:
        """Show what it came to."""
        ...


class CompletionNotice:
    """Progress line for clients that show no progress: only the outcome of a run is shown, as a message."""

    def __init__(self, connection: LspConnection) -> None:
        self._connection = connection

    def begin(self, title: str, *, message: str | None = None, cancellable: bool = False) -> None:
        """Nothing is shown."""
        _ = title, message, cancellable

    def report(self, message: str) -> None:
        """Nothing is shown."""
        _ = message

    def end(self, message: str | None = None) -> None:
        """Show it as a message."""
        params = {"type": 3, "message": f"{TITLE}: {message}"}
        _ = self._connection.notify("window/showMessage", params)


class RunProgress:
    """Turns events into at most two short reports a second, and only when the text changed."""

    def __init__(self, progress: ProgressLine) -> None:
        self._progress = progress
        self._doing = "thinking"
        self._tools = 0
        self._edited: set[Path] = set()
        self._usage: UsageReport | None = None
        self._shown = ""
        self._end = "stopped"

    def begin(self) -> None:
        """Show the line."""
        self._progress.begin(TITLE, message="thinking", cancellable=True)

    def end(self) -> None:
        """End the progress with the outcome of the run."""
        self._progress.end(self._end)

    async def due(self, reader: EventSubscription) -> None:
        """Wait for something to show, and not more often than is fit to read."""
        await reader.wait()
        text = self._text()
        if text != self._shown:
            self._shown = text
            self._progress.report(text)
        if not reader.closed:
            try:
                async with asyncio.timeout(REPORT_EVERY_S):
                    await reader.wait_closed()
            except TimeoutError:
                pass

    def see(self, event: Event) -> None:
        """Update the state of the line from an event."""
        match event:
            case ToolStarted(title=title) | ToolRunning(title=title):
                self._doing = title
            case ToolEnded():
                self._tools += 1
                self._doing = "thinking"
            case ThoughtStarted():
                self._doing = "thinking"
            case EditApplied(documents=documents):
                # What `changes.updated` counts waits since whatever run.
                self._edited.update(one.path for one in documents)
            case SessionUsage(usage=usage):
                self._usage = usage
            case RetryStarted(attempt=attempt, delay_ms=delay_ms):
                self._doing = f"retry {attempt} in {delay_ms / KILO:.0f} s"
            case CompactionStarted():
                self._doing = "compacting"
            case RunEnded():
                self._end = outcome(event)
            case _:
                pass

    def _text(self) -> str:
        parts = [self._doing]
        if self._tools:
            parts.append(f"{self._tools} calls")
        if self._edited:
            parts.append(_count(len(self._edited)))
        if self._usage is not None and self._usage.context_size:
            if self._usage.context_used is not None:
                share = 100 * self._usage.context_used // self._usage.context_size
                parts.append(f"context {share} %")
            parts.extend(_money(self._usage))
        return " · ".join(parts)


def outcome(event: RunEnded) -> str:
    """Describe in a line what a run came to: how it ended, what it changed, what it cost."""
    head = "done" if event.status == "completed" else event.status
    if event.error is not None:
        head = f"{head}: {event.error.message}"
    parts = [head]
    if event.changes.files:
        parts.append(_files(event.changes))
    tokens = event.usage.tokens
    if tokens.total:
        parts.append(f"{tokens.total / KILO:.1f}k tok")
    return " · ".join([*parts, *_money(event.usage)])


def _files(changes: ChangeCounts) -> str:
    return f"{_count(changes.files)} +{changes.additions} −{changes.deletions}"  # noqa: RUF001 - a true minus


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


def _money(usage: UsageReport) -> list[str]:
    return [] if usage.tokens.cost is None else [f"${usage.tokens.cost.total:.2f}"]


async def follow(
    session: AgentSession, run: RunId, progress: ProgressLine, *, reader: EventSubscription
) -> None:
    """Show a run on a line that is open, until it has ended. The caller closes the reader of the events `SHOWN`."""
    line = RunProgress(progress)
    has_ended = False
    try:
        line.begin()
        # A reader that is closed waits for nothing any more: the client has left.
        while not has_ended and session.info.is_running(run) and not reader.closed:
            await line.due(reader)
            for stamped in reader.take_now():
                line.see(stamped.event)
                has_ended = has_ended or (
                    isinstance(stamped.event, RunEnded) and stamped.event.run == run
                )
    finally:
        for stamped in reader.take_now():
            line.see(stamped.event)
        line.end()


async def show_run(
    connection: LspConnection,
    session: AgentSession,
    run: RunId,
    *,
    reader: EventSubscription,
    otherwise: ProgressLine | None = None,
) -> None:
    """Create a line of progress and show a run on it, until the run has ended.

    Args:
        connection: The client.
        session: The session.
        run: The run.
        reader: Reader of the events `SHOWN` of the session; the caller closes it.
        otherwise: Line for a client without progress; None: the run is not shown there.
    """
    async with asyncio.TaskGroup() as tasks:

        def stop() -> None:
            _ = tasks.create_task(session.abort(run=run))

        try:
            progress = await connection.create_progress(f"agent-run/{run}", on_cancel=stop)
        except ConnectionError:
            return
        if line := progress or otherwise:
            await follow(session, run, line, reader=reader)
