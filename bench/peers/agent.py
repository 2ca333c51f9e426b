"""One agent under measurement: how it is started, and the operations that are timed."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

import msgspec

from bench.lab import Command, Lab
from tests.support.lsp.lsp_links import ProcessLink

LONG_S = 120.0
Ability = Literal["prompt", "history", "read", "bash", "stream", "stored", "cancel"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt: when it was sent, and when its run was over, by the monotonic clock."""

    sent: float
    ended: float


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model of this agent writes it."""

    name: str
    arguments: Mapping[str, Any]


async def turn(agent: "Agent") -> Turn:
    """Send a prompt and wait until its run is over."""
    sent = await agent.begin()
    return Turn(sent, await agent.over())


class AgentFailedError(Exception):
    """The agent ended, refused a request, or did not answer."""


class Agent(Protocol):
    """An agent that has been started and has answered its first request."""

    ready_s: float
    """Seconds from its start to that answer."""

    @property
    def pid(self) -> int:
        """The process of the agent."""
        ...

    async def open(self, stored: str | None = None) -> float:
        """Open a stored session, None: a new one; returns the seconds until it was open."""
        ...

    async def begin(self) -> float:
        """Send a prompt; returns when, by the monotonic clock."""
        ...

    async def over(self) -> float:
        """Wait for the end of the run that `begin` began; returns when that came, by the monotonic clock."""
        ...

    async def cancel(self) -> None:
        """Cancel the run. Returns when the request is sent."""
        ...

    async def settle(self) -> None:
        """Wait until the agent has done the work that a run leaves behind."""
        ...


class Program(Protocol):
    """An agent as it is installed."""

    name: str
    title: str
    """Name and version."""
    cannot: Mapping[Ability, str]
    """Operations that it does not have, each with the reason."""

    def start(self, lab: Lab) -> AbstractAsyncContextManager[Agent]:
        """Start it in the lab's workspace, with the lab's provider as its model."""
        ...

    async def store(self, lab: Lab, messages: int) -> str:
        """Write a session of so many messages of 200 characters; returns the name for `Agent.open`."""
        ...

    def one_shot(self, lab: Lab) -> Command | None:
        """Return the command that sends one prompt and ends; None: there is none."""
        ...

    def command_line(self, lab: Lab, option: str) -> Command | None:
        """Return the command with one option, such as `--version`; None: there is none."""
        ...

    def read(self, path: str) -> Call:
        """Return a call that reads a file."""
        ...

    def bash(self, command: str) -> Call:
        """Return a call that runs a command."""
        ...


@dataclass(slots=True)
class LineAgent:
    """An agent that exchanges JSON, one value a line, over stdin and stdout.

    Lines are classified by their first bytes and parsed only when they answer a request, so that the reader does not
    compete with the agent for the processor.
    """

    answers_begin: tuple[bytes, ...]
    """First bytes of the lines that answer requests."""
    ends_begin: tuple[bytes, ...]
    """First bytes of the line that ends a run."""
    ready_s: float = 0.0
    lines: int = 0
    _link: ProcessLink | None = None
    _buffer: list[bytes] = field(default_factory=list[bytes])
    _answers: dict[str, asyncio.Future[Any]] = field(default_factory=dict[str, asyncio.Future[Any]])
    _over: asyncio.Future[float] | None = None
    _ended_because: str = ""

    @asynccontextmanager
    async def started(self, command: Command, lab: Lab) -> AsyncGenerator[Self]:
        """Start the process; it is ended with its children at the end of the block."""
        self._link = await ProcessLink.start(self, command.argv, env=command.env, cwd=lab.workspace)
        try:
            yield self
        finally:
            await self._link.close()

    @property
    def pid(self) -> int:
        """The process of the agent."""
        return self._process.pid

    def send(self, value: Mapping[str, Any]) -> float:
        """Send one value; returns when, by the monotonic clock."""
        raw = msgspec.json.encode(value) + b"\n"
        sent = time.monotonic()
        self._process.write(raw)
        return sent

    def asked(self, key: str) -> asyncio.Future[Any]:
        """Return the future of the answer to the request of that id."""
        self._answers[key] = asyncio.get_running_loop().create_future()
        return self._answers[key]

    def expect_end(self) -> None:
        """Prepare for the end of a run that begins now."""
        self._over = asyncio.get_running_loop().create_future()

    async def over(self) -> float:
        """Wait for the end of the run."""
        if self._over is None:
            raise AgentFailedError("no run has begun")
        return await self.waited(self._over, "the end of the run")

    async def waited(self, future: "asyncio.Future[Any]", what: str) -> Any:
        """Wait for a future of this agent.

        Raises:
            AgentFailedError: The agent ended first, or took too long.
        """
        if self._ended_because:
            self._fail(future)
        try:
            return await asyncio.wait_for(future, LONG_S)
        except TimeoutError:
            message = f"{what} did not come within {LONG_S:g} s"
            raise AgentFailedError(message) from None

    def bytes_came(self, raw: bytes) -> None:
        """Accept output."""
        now = time.monotonic()
        self._buffer.append(raw)
        if b"\n" not in raw:
            return
        *lines, rest = b"".join(self._buffer).split(b"\n")
        self._buffer = [rest]
        self.lines += len(lines)
        for line in lines:
            if line.startswith(self.ends_begin):
                if self._over is not None and not self._over.done():
                    self._over.set_result(now)
            elif line.startswith(self.answers_begin):
                self._answered(msgspec.json.decode(line))

    def link_ended(self, why: str) -> None:
        """Accept the end of the output: nothing that is waited for can come."""
        self._ended_because = self._ended_because or why
        for future in (*self._answers.values(), *([self._over] if self._over else [])):
            self._fail(future)

    def request_came(self, value: dict[str, Any]) -> None:
        """Answer a request of the agent itself; by default none is expected."""
        message = f"an unexpected request: {value['method']}"
        raise AgentFailedError(message)

    def _answered(self, value: dict[str, Any]) -> None:
        if "method" in value:
            self.request_came(value)
            return
        future = self._answers.pop(str(value.get("id")), None)
        if future is not None and not future.done():
            future.set_result(value)

    def _fail(self, future: "asyncio.Future[Any]") -> None:
        if future.done():
            return
        written = bytes(self._process.stderr).decode("utf-8", "replace").strip().splitlines()
        errors = [line.strip() for line in written if "Error: " in line]
        why = [*errors, *reversed(written), "no message"][0]
        future.set_exception(AgentFailedError(f"the process ended: {why[:120]}"))

    @property
    def _process(self) -> ProcessLink:
        if self._link is None:
            raise AgentFailedError("not started")
        return self._link
