"""Asks the person at the terminal whether something may be done; anything but a clear yes is a no."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

import anyio
from anyio import to_thread

from agent_core.events import (
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    ServerSubject,
    TrustSubject,
)
from agent_core.kernel.errors import TillerError
from agent_core.session import AgentSession
from server.lsp.dialogs import dialog, shortened

BY: Final = "terminal"
KEYS: Final[Mapping[str, str]] = {
    "allowOnce": "y",
    "allowRun": "r",
    "allowSession": "s",
    "allowProject": "p",
    "allowUser": "u",
    "rejectOnce": "n",
    "rejectAlways": "never",
}
"""What a person types for each way to answer."""
MOST_BYTES: Final = 4_096
"""A terminal gives no longer line."""

ReadLine = Callable[[], Awaitable[str]]
Write = Callable[[str], object]


async def ask_on_terminal(session: AgentSession, *, read_line: ReadLine, write: Write) -> None:
    """Ask what the session asks, one after the other, until it is closed."""
    reader = session.subscribe()
    waiting: dict[str, anyio.CancelScope] = {}
    turn = anyio.Lock()

    async def ask(request: PermissionRequest, scope: anyio.CancelScope) -> None:
        with scope:
            async with turn:
                write(_shown(request))
                line = await read_line()
                with suppress(TillerError):
                    _ = session.permissions.answer(request.request, taken(request, line), by=BY)

    try:
        async with anyio.create_task_group() as group:
            async for stamped in reader:
                match stamped.event:
                    case PermissionRequested(request=request):
                        scope = waiting[request.request] = anyio.CancelScope()
                        group.start_soon(ask, request, scope)
                    case QuestionRequested(request=question):
                        # There is no form here: the defaults count, and whoever asked is told.
                        session.questions.give_up(question.request)
                    case PermissionResolved(request=request, by=by):
                        waiting.pop(request, anyio.CancelScope()).cancel()
                        if by != BY:
                            write(f"(answered by {by})\n")
                    case _:
                        pass
            group.cancel_scope.cancel()
    finally:
        reader.close()


def taken(request: PermissionRequest, line: str) -> str:
    """Give the option that a line means; what is not clear is the default, a no."""
    typed = line.strip().lower()
    offered = {one["optionId"] for one in dialog(request)["actions"]}
    for option in request.options:
        if option.id in offered and typed == KEYS[option.kind]:
            return option.id
    return request.default


async def read_terminal_line() -> str:
    """Read what is typed from now on; what was typed before the question was not meant for it."""
    number = sys.stdin.fileno()
    if sys.platform == "win32":
        # The thread cannot be stopped; a line that comes after the end of the question is lost with it.
        return await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    with suppress(ImportError, OSError):
        import termios  # noqa: PLC0415 - not on Windows

        termios.tcflush(number, termios.TCIFLUSH)
    # Not in a thread: one that waits for a person who never types would hold up the end of the process.
    await anyio.wait_readable(number)
    return os.read(number, MOST_BYTES).decode("utf-8", "replace")


def _shown(request: PermissionRequest) -> str:
    """Show the question with its exact bytes, and what to type."""
    shown = dialog(request)
    kinds = {one.id: one.kind for one in request.options}
    lines = [
        f"  [{KEYS[kinds[one['optionId']]]}] {shortened(one['title'])}" for one in shown["actions"]
    ]
    subject = request.subject
    is_told = isinstance(subject, TrustSubject | ServerSubject)
    difference = subject.difference.splitlines() if is_told else []
    return "\n".join(("", shown["message"], *(f"    {line}" for line in difference), *lines, "? "))
