"""Codex (npm's @openai/codex) as `codex app-server`: JSON-RPC without its version field, one message a line."""

import json
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from typing_extensions import override

from bench.lab import Command, Lab, answer_of
from bench.peers.agent import Ability, AgentFailedError, Call, LineAgent, Program, turn
from bench.request_sent import history_text

VERSION = "0.169.0"
FOLDER = Path(sys.prefix) / "codex/node_modules/@openai"
PROMPT = "go on"
CONFIG = """
model = "m"
model_provider = "lab"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
model_context_window = 1000000
model_auto_compact_token_limit = 900000
web_search = "disabled"
[analytics]
enabled = false
[features]
apps = false
plugins = false
code_mode = false
[model_providers.lab]
name = "lab"
base_url = {base_url}
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
[projects.{workspace}]
trust_level = "trusted"
"""
TO_ITS_END_MS = 60_000


@dataclass(slots=True)
class CodexAgent(LineAgent):
    """Codex, started."""

    cwd: str = ""
    thread: str = ""
    turn_id: str = ""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def open(self, stored: str | None = None) -> float:
        """Resume a thread; None: start one."""
        began = time.monotonic()
        if stored is None:
            asked = {"cwd": self.cwd, "approvalPolicy": "never", "sandbox": "danger-full-access"}
            self.thread = (await self.ask("thread/start", asked))["thread"]["id"]
        else:
            await self.ask("thread/resume", {"threadId": stored})
            self.thread = stored
        return time.monotonic() - began

    async def begin(self) -> float:
        """Start a turn."""
        self.expect_end()
        content: Any = [{"type": "text", "text": PROMPT, "text_elements": []}]
        key, future = self._next()
        params = {"threadId": self.thread, "input": content}
        sent = self.send({"id": key, "method": "turn/start", "params": params})
        self.turn_id = _result(await self.waited(future, "turn/start"))["turn"]["id"]
        return sent

    async def settle(self) -> None:
        """Do nothing: no request is known to wait for that."""

    async def cancel(self) -> None:
        """Interrupt the turn."""
        params = {"threadId": self.thread, "turnId": self.turn_id}
        self.send({"id": self._next()[0], "method": "turn/interrupt", "params": params})

    async def inject(self, messages: int) -> None:
        """Append so many messages to the thread."""
        items = [
            {
                "type": "message",
                "role": "assistant" if number % 2 else "user",
                "content": [
                    {
                        "type": "output_text" if number % 2 else "input_text",
                        "text": history_text(number),
                    }
                ],
            }
            for number in range(messages)
        ]
        await self.ask("thread/inject_items", {"threadId": self.thread, "items": items})

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result."""
        key, future = self._next()
        self.send({"id": key, "method": method, "params": params})
        return _result(await self.waited(future, f"the answer to {method}"))

    @override
    def request_came(self, value: dict[str, Any]) -> None:
        self.send({"id": value["id"], "result": {"decision": "accept"}})

    def _next(self) -> tuple[int, Any]:
        number = next(self._numbers)
        return number, self.asked(str(number))


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise AgentFailedError(str(answer["error"]))
    return answer["result"]


@dataclass(slots=True)
class Codex(Program):
    """Codex, installed."""

    name: str = "codex"
    title: str = f"Codex {VERSION}"
    cannot: Mapping[Ability, str] = field(default_factory=lambda: {"read": "no such tool"})

    @asynccontextmanager
    async def start(self, lab: Lab) -> AsyncGenerator[CodexAgent]:
        """Start `codex app-server`, ready when it has answered `initialize`."""
        began = time.monotonic()
        agent = CodexAgent(
            answers_begin=(b'{"id":',),
            ends_begin=(b'{"method":"turn/completed"',),
            cwd=str(lab.workspace),
        )
        async with agent.started(self._command(lab, "app-server"), lab):
            about = {"name": "bench", "title": "bench", "version": "0"}
            able = {"experimentalApi": True}
            await agent.ask("initialize", {"clientInfo": about, "capabilities": able})
            agent.ready_s = time.monotonic() - began
            agent.send({"method": "initialized"})
            yield agent

    @override
    async def store(self, lab: Lab, messages: int) -> str:
        """Fill a thread in a process of its own; a turn makes sure that it is stored."""
        lab.provider.script([answer_of(1, repeat=-1)])
        async with self.start(lab) as agent:
            await agent.open()
            await agent.inject(messages)
            await turn(agent)
            return agent.thread

    @override
    def one_shot(self, lab: Lab) -> Command:
        """Return `codex exec`."""
        return self._command(lab, "exec", "--skip-git-repo-check", PROMPT)

    @override
    def command_line(self, lab: Lab, option: str) -> Command:
        """Return `codex` with an option alone."""
        return self._command(lab, option)

    @override
    def read(self, path: str) -> Call:
        """Refuse: there is no such tool."""
        raise AgentFailedError(self.cannot["read"])

    @override
    def bash(self, command: str) -> Call:
        """Return a call of `exec_command` that is awaited to its end."""
        return Call("exec_command", {"cmd": command, "yield_time_ms": TO_ITS_END_MS})

    def _command(self, lab: Lab, *arguments: str) -> Command:
        home = lab.dirs.home / "codex"
        if not home.exists():
            home.mkdir()
            base, workspace = json.dumps(lab.provider.base_url), json.dumps(str(lab.workspace))
            text = CONFIG.format(base_url=base, workspace=workspace)
            (home / "config.toml").write_text(text, encoding="utf-8")
        return Command([str(program()), *arguments], {**lab.env, "CODEX_HOME": str(home)})


def program() -> Path:
    """Return the native program of the package: its JavaScript launcher would only add a start of node.

    Raises:
        AgentFailedError: It is not installed.
    """
    found = sorted(FOLDER.glob("codex-*/vendor/*/bin/codex"))
    if not found:
        raise AgentFailedError("Codex is not installed: `make bench PEERS=codex` installs it")
    return found[0]
