"""Tasks as lines of work-done progress, one for each task that runs."""

import asyncio
from collections.abc import Callable
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.events import EventSubscription, TaskCreated, TaskEnded, TaskInfo, TaskUpdated
from agent_core.session import AgentSession
from tiller_server.lsp.events.run_progress import KILO, REPORT_EVERY_S
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.progress import WorkDone

SHOWN: Final = (TaskCreated, TaskUpdated, TaskEnded)
"""The events that change a line."""


class _TaskLine(Struct, kw_only=True):
    """A task that has not ended."""

    task: TaskInfo
    token: str
    news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    over: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class TaskProgress:
    """The tasks of one session, as one client is shown them."""

    def __init__(self, connection: LspConnection, session: AgentSession) -> None:
        self._connection = connection
        self._session = session
        self._lines: dict[str, _TaskLine] = {}

    async def follow(self, reader: EventSubscription, *, is_shown: Callable[[], bool]) -> None:
        """Show every task that begins, until the reader is closed, by the caller.

        Args:
            reader: Reader of the events `SHOWN` of the session.
            is_shown: Returns whether the client is shown a task that begins now.
        """
        async with anyio.create_task_group() as group:
            async for stamped in reader:
                match stamped.event:
                    case TaskCreated(task=task) if is_shown():
                        # A task that is continued is created again, and no token is used twice.
                        token = f"agent-task/{task.session}/{stamped.seq}"
                        line = self._lines[task.id] = _TaskLine(task=task, token=token)
                        group.start_soon(self._show, line, group)
                    case TaskUpdated(task=task) | TaskEnded(task=task):
                        self._update(task)
                    case _:
                        pass
            group.cancel_scope.cancel()

    def _update(self, task: TaskInfo) -> None:
        line = self._lines.get(task.id)
        if line is None:
            return
        line.task = task
        line.news.set()
        if task.is_ended:
            line.over.set()
            del self._lines[task.id]

    async def _show(self, line: _TaskLine, group: TaskGroup) -> None:
        while line.task.state == "queued":
            await line.news.wait()
            line.news.clear()

        def stop() -> None:
            _ = group.start_soon(self._session.tasks.stop_for_user, line.task.id)

        try:
            progress = await self._connection.create_progress(line.token, on_cancel=stop)
        except ConnectionError:
            return
        if progress is None:
            return
        try:
            await _report(line, progress)
        finally:
            progress.end(_outcome(line.task))


async def _report(line: _TaskLine, progress: WorkDone) -> None:
    """Show the activity of a task until its end, at most twice a second."""
    shown = _activity(line.task)
    title = f"task {line.task.id}: {line.task.description}"
    progress.begin(title, message=shown, cancellable=True)
    while not line.over.is_set():
        await line.news.wait()
        line.news.clear()
        text = _activity(line.task)
        if text == shown or line.over.is_set():
            continue
        shown = text
        progress.report(text)
        try:
            async with asyncio.timeout(REPORT_EVERY_S):
                await line.over.wait()
        except TimeoutError:
            pass


def _activity(task: TaskInfo) -> str:
    doing, count = task.activity or "thinking", task.tool_calls
    return f"{doing} · {count} tool call{'' if count == 1 else 's'}" if count else doing


def _outcome(task: TaskInfo) -> str:
    """Return how a task ended, or the state in which it was shown last."""
    parts = [task.state if task.error is None else f"{task.state}: {task.error}"]
    if task.tokens:
        parts.append(f"{task.tokens / KILO:.1f}k tok")
    if task.usd is not None:
        parts.append(f"${task.usd:.2f}")
    return " · ".join(parts)
