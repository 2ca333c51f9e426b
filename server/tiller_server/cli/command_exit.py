"""The end of commands: how a failure, a result or a signal becomes output and an exit code."""

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn, Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec import Struct

from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode as to_json
from tiller_server.cli.exit_codes import FAILED, INTERRUPTED, TERMINATED, code_of_error, complain
from tiller_server.cli.terminal.stdio import OutputLost, abandon, speak_json

HUNG_UP: Final = getattr(signal, "SIGHUP", None)
"""Signal that a closed terminal sends; None on Windows, which has no such signal."""
CODES: Final[Mapping[signal.Signals, int]] = {
    signal.SIGINT: INTERRUPTED,
    signal.SIGTERM: TERMINATED,
    **({} if HUNG_UP is None else {HUNG_UP: TERMINATED}),
}


class Abortable(Protocol):
    """A session, of which the end of a command needs no more than this."""

    async def abort(self) -> object:
        """Stop the current run; raises a TillerError when the session is closed."""
        ...


class TerminationRequest(Struct):
    """How the run was asked to end, if it was."""

    code: int | None = None
    tidy: Callable[[], None] = lambda: None
    """Restores the terminal before a process exits at once."""


async def watch_signals(
    session: Abortable,
    ending: TerminationRequest,
    group: TaskGroup,
    *,
    task_status: TaskStatus[None],
) -> None:
    """The first Ctrl-C or SIGTERM cancels and settles, the second leaves at once; so does a terminal that is closed."""
    await watch_for(partial(abort, session), ending, group, task_status=task_status)


async def watch_for(
    settle: Callable[[], Coroutine[None, None, None]],
    ending: TerminationRequest,
    group: TaskGroup,
    *,
    task_status: TaskStatus[None],
) -> None:
    """Settle at the first signal in a way of the caller's, and leave at the second."""
    with anyio.open_signal_receiver(*_listened()) as signals:
        task_status.started()
        async for number in signals:
            if ending.code is not None:
                leave(ending.code, ending)
            ending.code = CODES[number]
            with suppress(OSError, TillerError):
                ending.tidy()
                _ = sys.stderr.write("stopping; once more leaves at once\n")
            group.start_soon(settle)


def _listened() -> list[signal.Signals]:
    """Return the signals that end a run. Under `nohup` the end of the terminal is none."""
    return [one for one in CODES if signal.getsignal(one) != signal.SIG_IGN or one != HUNG_UP]


async def abort(session: Abortable) -> None:
    """Stop what goes on in a session, if something does and it is still open."""
    with suppress(TillerError):
        _ = await session.abort()


def leave(code: int, ending: TerminationRequest) -> NoReturn:
    """End the process now, and with it what it started. The session's file is whole at any time."""
    import psutil  # noqa: PLC0415 - 30 ms that only this needs

    with suppress(OSError, TillerError):
        ending.tidy()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()
    os._exit(code)


def code_of(command: str, work: Callable[[], int], *, debug: bool, as_json: bool = False) -> int:
    """Run the work of a command; return the exit code.

    An error is written as one sentence to standard error, and for programs that read JSON as a line to standard output
    too. Output that cannot be written is reported on standard error only.

    Args:
        command: Name of the command.
        work: Function to run; returns the exit code when no error is raised.
        debug: Raise an error of the work, with its traceback, instead of reporting it.
        as_json: Whether the output is read as JSON.

    Raises:
        TillerError: The work failed, and `debug` is set. Never `OutputLost`.
    """
    try:
        return work()
    except OutputLost as error:
        complain(command, str(error))
        abandon()
        return FAILED
    except TillerError as error:
        if debug:
            raise
        if as_json:
            speak_json()
            body = to_json({"type": "error", "error": {"kind": error.kind, "message": str(error)}})
            _ = sys.stdout.write(body.decode() + "\n")
            _ = sys.stdout.flush()
        complain(command, str(error))
        return code_of_error(error)
