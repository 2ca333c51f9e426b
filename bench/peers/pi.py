"""pi (npm's pi-coding-agent) in its RPC mode: JSON lines with an id, answered by lines of type `response`."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from bench.lab import Command, Lab
from bench.peers.agent import Ability, AgentFailedError, Call, LineAgent
from bench.request_sent import write_history
from tests.support.programs.reference_agent import PACKAGE, VERSION, reference_environment
from tests.support.provider import write_config

PROMPT = "go on"
CONTEXT_WINDOW = 1_000_000
SETTINGS = {"compaction": {"enabled": False}, "retry": {"enabled": False}}


@dataclass(slots=True)
class PiAgent(LineAgent):
    """pi, started."""

    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def open(self, stored: str | None = None) -> float:
        """Open a session file; None: a new session."""
        began = time.monotonic()
        if stored is None:
            await self.ask("new_session")
        else:
            await self.ask("switch_session", sessionPath=stored)
        return time.monotonic() - began

    async def begin(self) -> float:
        """Send a prompt."""
        self.expect_end()
        return self.send({"type": "prompt", "message": PROMPT})

    async def settle(self) -> None:
        """Wait for an answer, which comes after everything before it."""
        await self.ask("get_state")

    async def cancel(self) -> None:
        """Cancel the run."""
        self.send({"type": "abort"})

    async def ask(self, kind: str, **fields: Any) -> Any:
        """Send a command and return the data of its answer."""
        key = f"r{next(self._numbers)}"
        future = self.asked(key)
        self.send({"id": key, "type": kind, **fields})
        answer = await self.waited(future, f"the answer to {kind}")
        if not answer["success"]:
            message = f"{kind}: {answer.get('error')}"
            raise AgentFailedError(message)
        return answer.get("data")


@dataclass(slots=True)
class Pi:
    """pi, installed."""

    name: str = "pi"
    title: str = f"pi {VERSION}"
    cannot: Mapping[Ability, str] = field(default_factory=dict[Ability, str])

    @asynccontextmanager
    async def start(self, lab: Lab) -> AsyncGenerator[PiAgent]:
        """Start `pi --mode rpc`, ready when it has answered `get_state`."""
        began = time.monotonic()
        agent = PiAgent(answers_begin=(b'{"id":',), ends_begin=(b'{"type":"agent_end"',))
        async with agent.started(self._command(lab, "--mode", "rpc"), lab):
            await agent.ask("get_state")
            agent.ready_s = time.monotonic() - began
            yield agent

    async def store(self, lab: Lab, messages: int) -> str:
        """Write a session file; the format is also ours."""
        return str((await write_history(lab, messages))[1])

    def one_shot(self, lab: Lab) -> Command:
        """Return `pi -p`."""
        return self._command(lab, "--no-session", "-p", PROMPT)

    def command_line(self, lab: Lab, option: str) -> Command:
        """Return `pi` with an option alone."""
        command = self._command(lab)
        return Command([*command.argv[:2], option], command.env)

    def read(self, path: str) -> Call:
        """Return a call of `read`."""
        return Call("read", {"path": path})

    def bash(self, command: str) -> Call:
        """Return a call of `bash`."""
        return Call("bash", {"command": command})

    def _command(self, lab: Lab, *arguments: str) -> Command:
        home = lab.dirs.home / "pi"
        if not (home / "agent").exists():
            window = CONTEXT_WINDOW
            write_config(home / "agent", lab.provider, context_window=window, settings=SETTINGS)
        argv = ["node", str(PACKAGE / "dist/cli.js"), "--model", "lab/m", *arguments]
        return Command(argv, reference_environment(home))
