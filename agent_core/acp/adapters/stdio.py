"""The connection to an external agent that is a program on this machine. Nothing that it sends is without a limit."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from agent_core.acp.port import AgentFailed, AgentLaunch
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ProcessGone, WorkspaceError
from agent_core.kernel.json import decode, encode, is_object
from agent_core.kernel.text import one_line
from agent_core.kernel.threads import run_in_thread
from agent_core.workspace.processes.interactive import InteractiveProcess

MESSAGE_BYTES: Final = 8 * 1024 * 1024
"""The longest message that is read."""
SLOW_TO_READ_BYTES: Final = 64 * 1024
"""Longer messages are read in a thread."""
MOST_UNSENT: Final = 256
"""Messages that may wait for an agent which does not read."""
MOST_NOISE: Final = 100
"""Lines without a message, such as a greeting, that are ignored."""
BURST: Final = 32
COMPLAINT_BYTES: Final = 2_048
LOGGED_BYTES: Final = 64 * 1024
"""How much of an agent's errors is written to the log."""
COMPLAINT_CHARS: Final = 300
LEAVE_S: Final = 1.0
"""How long an agent may take to end after its input was closed."""
GRACE_S: Final = 0.5
COMPLAINTS_S: Final = 0.5
"""How long the last complaints of an agent that has ended are waited for."""

Starts = Callable[[AgentLaunch, Path], Awaitable[InteractiveProcess]]

log = logging.getLogger(__name__)


@asynccontextmanager
async def connected(starts: Starts, *, redact: Callable[[str], str]) -> AsyncGenerator["StdioLink"]:
    """Hold the connection to an agent that is not started yet; leaving the context ends it with all that it started.

    Args:
        starts: Starts the program.
        redact: Removes secrets from a text that is shown or logged.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        link = StdioLink(starts, group, redact=redact)
        try:
            yield link
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await link.end()
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


class Complaints:
    """Output of a program besides its messages: its standard error, and other lines between messages."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._kept = b""
        self._logged = 0
        self._noise = 0
        self.over = anyio.Event()
        """Set when its standard error is closed."""

    @property
    def ending(self) -> str:
        """The last of it, as the end of a sentence; empty: there is nothing."""
        text = self.cleaned(self._kept.decode("utf-8", "replace").strip())
        return f"; it wrote last: {text[-COMPLAINT_CHARS:]}" if text else ""

    def cleaned(self, text: str) -> str:
        """Return a text on one line, without secrets."""
        return one_line(self._redact(text))

    async def listen(self, name: str, process: InteractiveProcess) -> None:
        """Log what an agent writes to its standard error, up to a limit."""
        while data := await process.read_errors():
            self._kept = (self._kept + data)[-COMPLAINT_BYTES:]
            if self._logged < LOGGED_BYTES:
                self._logged += len(data)
                text = self._redact(data.decode("utf-8", "replace").rstrip())
                log.info("external agent %s: %s", name, text)
        self.over.set()

    def count_noise(self, line: bytes) -> None:
        """Ignore a line that is no message, such as a greeting.

        Raises:
            AgentFailed: There were too many.
        """
        if not line:
            return
        self._noise += 1
        self._kept = (self._kept + line[:200] + b"\n")[-COMPLAINT_BYTES:]
        if self._noise > MOST_NOISE:
            message = f"it writes other text than messages to its standard output{self.ending}"
            raise AgentFailed(message)


class StdioLink:
    """Messages to and from one program."""

    def __init__(self, starts: Starts, group: TaskGroup, *, redact: Callable[[str], str]) -> None:
        self._starts = starts
        self._group = group
        self._process: InteractiveProcess | None = None
        self._rest = bytearray()
        self._searched = 0
        """How much of it has no end of a line."""
        self._received = 0
        self._complaints = Complaints(redact)
        # Written by a task of its own: an agent that waits for its output to be read does not read its input.
        streams = anyio.create_memory_object_stream[bytes](MOST_UNSENT)
        self._outgoing, self._unsent = streams
        # A task that is cancelled still has something to send: that the agent is to stop.
        self._writing = anyio.CancelScope(shield=True)

    def begin(self, job: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run a job beside others."""
        self._group.start_soon(job)

    async def start(self, launch: AgentLaunch, *, cwd: Path) -> None:
        """Start the program."""
        try:
            self._process = await self._starts(launch, cwd)
        except WorkspaceError as error:
            message = f"it could not be started: {error}"
            raise AgentFailed(message) from error
        self._group.start_soon(self._write, self._process)
        self._group.start_soon(self._complaints.listen, launch.name, self._process)

    def send(self, message: JsonObject) -> None:
        """Send a message."""
        try:
            self._outgoing.send_nowait(encode(message) + b"\n")
        except anyio.WouldBlock as error:
            why = f"it does not read its input: {MOST_UNSENT} messages wait for it"
            raise AgentFailed(why) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            why = "it does not read its input any more"
            raise AgentFailed(why) from error

    async def receive(self) -> JsonObject:
        """Wait for the next message."""
        while True:
            self._received += 1
            if self._received % BURST == 0:
                # Others get a turn: thousands of messages may come in one piece.
                await checkpoint()
            line = await self._line()
            if not line.startswith(b"{"):
                self._complaints.count_noise(line)
                continue
            try:
                slow = len(line) > SLOW_TO_READ_BYTES
                message = await run_in_thread(decode, line) if slow else decode(line)
            except (ValueError, RecursionError) as error:
                why = self._complaints.cleaned(str(error))[:COMPLAINT_CHARS]
                text = f"it sent a line that is not JSON ({why})"
                raise AgentFailed(text) from error
            if is_object(message):
                return message

    async def end(self) -> None:
        """End the program: by closing its input, else by force."""
        self._outgoing.close()
        process = self._process
        if process is None:
            self._unsent.close()
            return
        process.finish()
        with anyio.move_on_after(LEAVE_S):
            _ = await process.wait()
        _ = await process.end(grace_s=GRACE_S)
        self._writing.cancel()

    async def _line(self) -> bytes:
        process = self._process
        if process is None:
            message = "it was not started"
            raise AgentFailed(message)
        while (end := self._rest.find(b"\n", self._searched)) < 0:
            self._searched = len(self._rest)
            if len(self._rest) > MESSAGE_BYTES:
                message = f"it sent a line of more than {MESSAGE_BYTES} bytes"
                raise AgentFailed(message)
            data = await process.read()
            if not data:
                raise await self._ended(process)
            self._rest += data
        line = bytes(self._rest[:end]).strip()
        del self._rest[: end + 1]
        self._searched = 0
        return line

    async def _ended(self, process: InteractiveProcess) -> AgentFailed:
        how = "closed its output"
        with anyio.move_on_after(COMPLAINTS_S):
            await self._complaints.over.wait()
            end = await process.wait()
            how = f"ended with exit code {end.exit_code}"
            if end.exit_code is None:
                how = f"was ended by signal {end.signal}"
        return AgentFailed(f"it {how} before it had answered{self._complaints.ending}")

    async def _write(self, process: InteractiveProcess) -> None:
        with self._writing:
            async for data in self._unsent:
                try:
                    await process.write(data)
                except ProcessGone:
                    break  # the end of its output says why
        self._unsent.close()
