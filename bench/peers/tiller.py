"""Tiller as the comparison drives it: `tiller lsp`, in process or through the daemon, with the client of the benchmarks."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from bench.client import LONG_S, Client, Timed
from bench.lab import Command, Lab
from bench.peers.agent import Ability, AgentFailedError, Call
from bench.request_sent import write_history
from tests.support.lsp.lsp_profiles import VSCODE
from tests.support.lsp.lsp_subscription import Subscription

PROMPT = "go on"
Way = Literal["in process", "daemon"]


@dataclass(slots=True)
class TillerAgent:
    """Tiller, started."""

    client: Client
    ready_s: float
    _stream: Subscription | None = None
    _taken: Timed | None = None

    @property
    def pid(self) -> int:
        """The server in process, or the shim."""
        return self.client.pid

    async def open(self, stored: str | None = None) -> float:
        """Open a session and follow it."""
        if self._stream is not None:
            await self._stream.unsubscribe()
        opened = await self.client.open_session(stored or "new")
        self._stream = await self.client.follow()
        return opened.took_s

    async def begin(self) -> float:
        """Send a prompt; it is accepted."""
        self._taken = await self.client.prompt(PROMPT)
        return self._taken.sent

    async def over(self) -> float:
        """Wait for the end of the run."""
        if self._stream is None or self._taken is None:
            raise AgentFailedError("no run has begun")
        run = self._taken.result["run"]
        event = await self._stream.wait(type="run.ended", run=run, timeout_s=LONG_S)
        now = time.monotonic()
        if event["status"] == "failed":
            message = f"the run failed: {event.get('error')}"
            raise AgentFailedError(message)
        return now

    async def cancel(self) -> None:
        """Cancel the run."""
        self.client.call("agent/run/cancel", {})

    async def settle(self) -> None:
        """Wait for an answer, which comes after everything before it."""
        await self.client.request("agent/status", {})


@dataclass(slots=True)
class Tiller:
    """Tiller of this checkout."""

    way: Way = "in process"
    name: str = "tiller"
    title: str = "Tiller"
    cannot: Mapping[Ability, str] = field(default_factory=dict[Ability, str])

    @asynccontextmanager
    async def start(self, lab: Lab) -> AsyncGenerator[TillerAgent]:
        """Start `tiller lsp`, ready when it has answered `initialize`."""
        began = time.monotonic()
        async with self._client(lab) as client:
            answered = await client.introduce(VSCODE, lab.workspace)
            yield TillerAgent(client, answered - began)

    async def store(self, lab: Lab, messages: int) -> str:
        """Write a session file, as the product writes one."""
        return (await write_history(lab, messages))[0]

    def one_shot(self, lab: Lab) -> Command:
        """Return `tiller run`."""
        return Command(lab.tiller_argv("run", PROMPT), lab.env)

    def command_line(self, lab: Lab, option: str) -> Command:
        """Return `tiller` with an option alone."""
        return Command(lab.tiller_argv(option), lab.env)

    def read(self, path: str) -> Call:
        """Return a call of `read`."""
        return Call("read", {"path": path})

    def bash(self, command: str) -> Call:
        """Return a call of `bash`."""
        return Call("bash", {"command": command})

    def _client(self, lab: Lab) -> AbstractAsyncContextManager[Client]:
        return lab.tiller(None) if self.way == "in process" else lab.shim()
