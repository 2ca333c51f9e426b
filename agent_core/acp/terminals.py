"""Terminals of an external agent: commands that run for it, whose output it asks for, until it releases them."""

import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

import anyio

from agent_core.acp.requests import INVALID_PARAMS, OpenRequest, error, reply
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import as_text
from agent_core.tools.command import END_BOUND_S, KILL_GRACE_S, LINGER_S
from agent_core.workspace import Process, ProcessEnd

MOST_TERMINALS: Final = 16
"""Terminals that are not released."""
MOST_SHOWN: Final = 64
"""Terminals whose output is kept after their release, for the tool calls that show them."""
MOST_BYTES: Final = 1024 * 1024
CONTINUES: Final = range(0x80, 0xC0)
"""Bytes of UTF-8 that begin no character."""


class AgentTerminal:
    """A command."""

    def __init__(self, process: Process, *, limit_bytes: int) -> None:
        """Create it; `follow` has to run.

        Args:
            process: The command; ended by `follow`.
            limit_bytes: How much of the end of its output is kept.
        """
        self.end: ProcessEnd | None = None
        """None: it is running."""
        self.over = anyio.Event()
        """Set when the command has ended and its output is complete."""
        self.stop = anyio.Event()
        """Set to end it with everything that it has started."""
        self._process = process
        self._limit_bytes = limit_bytes
        self._output = bytearray()
        self._is_truncated = False
        self._closed = anyio.Event()

    async def follow(self) -> None:
        """Read until the command is over and is to be ended; cancelled, it leaves no process behind."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._read)
                group.start_soon(self._end_when_asked)
                self.end = await self._process.wait()
                with anyio.move_on_after(LINGER_S):
                    await self._closed.wait()
                self.over.set()
        finally:
            with anyio.move_on_after(END_BOUND_S, shield=True):
                await self._process.end(grace_s=KILL_GRACE_S)

    def output(self) -> tuple[str, bool]:
        """Return the end of the output, and whether it is not all of it."""
        start = 0
        while self._is_truncated and start < len(self._output) and self._output[start] in CONTINUES:
            start += 1
        return self._output[start:].decode("utf-8", "replace"), self._is_truncated

    async def _read(self) -> None:
        while data := await self._process.read():
            self._output += data
            if len(self._output) > self._limit_bytes:
                self._is_truncated = True
                del self._output[: len(self._output) - self._limit_bytes]
        self._closed.set()

    async def _end_when_asked(self) -> None:
        await self.stop.wait()
        await self._process.end(grace_s=KILL_GRACE_S)


class AgentTerminals:
    """The terminals of one agent."""

    def __init__(
        self,
        begin: Callable[[Callable[[], Coroutine[None, None, None]]], None],
        *,
        redact: Callable[[str], str],
    ) -> None:
        """Create it without terminals.

        Args:
            begin: Runs a job beside others; it is cancelled when the agent is ended.
            redact: Removes secrets from output.
        """
        self._begin = begin
        self._redact = redact
        self._open: dict[str, AgentTerminal] = {}
        self._released: dict[str, AgentTerminal] = {}
        self._count = 0

    def check_room(self) -> None:
        """Check that there may be one more.

        Raises:
            ToolError: There are too many.
        """
        if len(self._open) >= MOST_TERMINALS:
            message = f"{MOST_TERMINALS} terminals are open: release one first"
            raise ToolError(message)

    def add(self, process: Process, *, limit_bytes: int | None) -> str:
        """Follow a command that was started for the agent; return the id of its terminal."""
        self._count += 1
        name = f"terminal-{self._count}"
        limit = MOST_BYTES if limit_bytes is None else min(max(limit_bytes, 0), MOST_BYTES)
        self._open[name] = terminal = AgentTerminal(process, limit_bytes=limit)
        self._begin(terminal.follow)
        return name

    def text(self, name: str) -> str:
        """Return the output of a terminal, also of one that was released; empty: there is none."""
        terminal = self._open.get(name) or self._released.get(name)
        return "" if terminal is None else self._redact(terminal.output()[0])

    def answer(self, request: OpenRequest, send: Callable[[JsonObject], None]) -> None:
        """Answer a request about a terminal, now or when its command has ended.

        Args:
            request: The request.
            send: Sends a message to the agent.
        """
        name = as_text(request.params.get("terminalId"))
        terminal = self._open.get(name)
        if terminal is None:
            send(error(request.id, INVALID_PARAMS, f"there is no terminal {name[:80]!r}"))
            return
        match request.method:
            case "terminal/output":
                text, is_truncated = terminal.output()
                status: JsonObject = (
                    {} if terminal.end is None else {"exitStatus": exit_status(terminal.end)}
                )
                shown: JsonObject = {"output": self._redact(text), "truncated": is_truncated}
                send(reply(request.id, {**shown, **status}))
            case "terminal/wait_for_exit":
                self._begin(lambda: _answer_at_end(request, terminal, send))
            case "terminal/kill":
                terminal.stop.set()
                send(reply(request.id, {}))
            case _:
                terminal.stop.set()
                self._released[name] = self._open.pop(name)
                if len(self._released) > MOST_SHOWN:
                    del self._released[next(iter(self._released))]
                send(reply(request.id, {}))

    def stop(self) -> None:
        """End all commands."""
        for terminal in self._open.values():
            terminal.stop.set()


async def _answer_at_end(
    request: OpenRequest, terminal: AgentTerminal, send: Callable[[JsonObject], None]
) -> None:
    await terminal.over.wait()
    if terminal.end is not None:
        send(reply(request.id, exit_status(terminal.end)))


def exit_status(end: ProcessEnd) -> JsonObject:
    """Return how a command has ended, as the protocol has it."""
    name: JsonValue = None
    if end.signal is not None:
        name = f"signal {end.signal}"
        with suppress(ValueError):
            name = signal.Signals(end.signal).name
    return {"exitCode": end.exit_code, "signal": name}
