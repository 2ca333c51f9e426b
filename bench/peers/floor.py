"""The floor: a program that sends the prompt over a socket, parses the answer and writes each delta as a line."""

import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from typing_extensions import override

from bench.lab import ROOT, Command, Lab
from bench.peers.agent import Ability, Agent, AgentFailedError, Call, LineAgent, Program

NO_TOOLS = "has no tools"
NO_SESSIONS = "keeps no sessions"


@dataclass(slots=True)
class FloorAgent(LineAgent, Agent):
    """The floor, started."""

    @override
    async def open(self, stored: str | None = None) -> float:
        """Do nothing: every prompt stands alone."""
        return 0.0

    @override
    async def begin(self) -> float:
        """Send a prompt."""
        self.expect_end()
        return self.send({"prompt": "go on"})

    @override
    async def cancel(self) -> None:
        """Refuse: it cannot be cancelled."""
        raise AgentFailedError(NO_TOOLS)

    @override
    async def settle(self) -> None:
        """Do nothing: it works only while it answers."""


@dataclass(slots=True)
class Floor(Program):
    """The floor, as a program."""

    name: str = "floor"
    title: str = "floor: a bare socket"
    cannot: Mapping[Ability, str] = field(
        default_factory=lambda: {
            "history": NO_SESSIONS,
            "stored": NO_SESSIONS,
            "read": NO_TOOLS,
            "bash": NO_TOOLS,
            "cancel": NO_TOOLS,
        }
    )

    @asynccontextmanager
    async def start(self, lab: Lab) -> AsyncGenerator[FloorAgent]:
        """Start it; ready when it has written its first line."""
        began = time.monotonic()
        agent = FloorAgent(answers_begin=(b'{"id":',), ends_begin=(b'{"type":"over"}',))
        client = ROOT / "bench/peers/raw_client.py"
        port = lab.provider.origin.rpartition(":")[2]
        argv = [sys.executable, "-S", "-P", str(client), port]
        ready = agent.asked("ready")
        async with agent.started(Command(argv, lab.env), lab):
            await agent.waited(ready, "the first line")
            agent.ready_s = time.monotonic() - began
            yield agent

    @override
    async def store(self, lab: Lab, messages: int) -> str:
        """Refuse: it keeps no sessions."""
        raise AgentFailedError(NO_SESSIONS)

    @override
    def one_shot(self, lab: Lab) -> Command | None:
        """Return nothing: it is no command."""
        return None

    @override
    def command_line(self, lab: Lab, option: str) -> Command | None:
        """Return the interpreter alone, which every Python command pays for."""
        return Command([sys.executable, "-P", "-c", "pass"], lab.env)

    @override
    def read(self, path: str) -> Call:
        """Refuse: it has no tools."""
        raise AgentFailedError(NO_TOOLS)

    @override
    def bash(self, command: str) -> Call:
        """Refuse: it has no tools."""
        raise AgentFailedError(NO_TOOLS)
