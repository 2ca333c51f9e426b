"""Lets the embedded model work on real files with the real tools, until it stops."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError
from agent_core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from agent_core.providers import (
    ModelRequest,
    StreamFinished,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolDeclaration,
)
from agent_core.providers.adapters.embedded.model import EmbeddedModel
from agent_core.tools import ToolContext, ToolResult
from agent_core.tools.builtin.bash import bash_tool
from agent_core.tools.builtin.edit.tool import edit_tool
from agent_core.tools.builtin.read.tool import read_tool
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses

PROMPT = "The tests fail. Please repair the project."
MOST_TURNS = 250


@dataclass(kw_only=True)
class Repairer:
    """One conversation with the embedded model about a folder."""

    root: Path
    scratch: Path
    python: tuple[str, ...]
    """The command that `python3` stands for."""
    refuse: Mapping[str, str] = field(default_factory=dict)
    """Tools that are refused, with the words."""
    without: frozenset[str] = frozenset()
    """Tools that are not offered."""
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    async def ask(self, words: str = PROMPT) -> str:
        """Say something, run the tools that are called, and give the last words."""
        self.messages.append(UserMessage(content=(Text(text=words),), at_ms=0))
        for _ in range(MOST_TURNS):
            answer = await self.answer()
            self.messages.append(answer)
            if not answer.tool_calls:
                return answer.text
            for call in answer.tool_calls:
                self.calls.append(call)
                self.messages.append(await self._result(call))
        raise AssertionError("it does not stop")

    async def answer(self) -> AssistantMessage:
        """Ask the model once; check that what it streams is what it answers."""
        request = ModelRequest(
            system="", messages=tuple(self.messages), tools=tuple(self._declarations())
        )
        words, raw, named = "", "", ""
        answer = None
        async with EmbeddedModel(SystemClock()).stream(request) as parts:
            async for part in parts:
                match part:
                    case TextDelta(text=text):
                        words += text
                    case ToolCallStart(name=name):
                        named = name
                    case ToolCallDelta(text=text):
                        raw += text
                    case StreamFinished(message=message):
                        answer = message
                    case _:
                        raise AssertionError(part)
        assert answer is not None
        assert words == answer.text
        assert [named] * bool(named) == [call.name for call in answer.tool_calls]
        assert bool(raw) == bool(answer.tool_calls)
        return answer

    def edited(self) -> list[str]:
        """Give the paths of all edits."""
        return [str(call.arguments["path"]) for call in self.calls if call.name == "edit"]

    def _declarations(self):
        for tool in self._tools().values():
            if tool.spec.name not in self.without:
                yield ToolDeclaration(
                    name=tool.spec.name,
                    description=tool.spec.description,
                    parameters=tool.spec.parameters,
                )

    def _tools(self):
        return {tool.spec.name: tool for tool in (bash_tool(), read_tool(), edit_tool())}

    async def _result(self, call: ToolCall) -> ToolResultMessage:
        if call.name in self.refuse:
            result = ToolResult(content=(Text(text=self.refuse[call.name]),), is_error=True)
        else:
            tool = self._tools()[call.name]
            try:
                result = await tool.check(call.arguments).run(self._context(call))
            except TillerError as error:
                result = ToolResult(content=(Text(text=str(error)),), is_error=True)
        return ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=result.content,
            is_error=result.is_error,
            at_ms=0,
        )

    def _context(self, call: ToolCall) -> ToolContext:
        return ToolContext(
            call=call.id,
            workspace=Workspace(
                roots=(self.root.resolve(),),
                files=DiskFiles(roots=(self.root.resolve(),), home=self.scratch),
                processes=DiskProcesses(),
                env=self._env(),
            ),
            clock=SystemClock(),
            output=lambda _: None,
            scratch=str(self.scratch),
        )

    def _env(self) -> dict[str, str]:
        programs = self.scratch / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        python = programs / "python3"
        if not python.exists():
            words = " ".join(f"'{word}'" for word in self.python)
            python.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
            python.chmod(0o755)
        return {
            "PATH": f"{programs}{os.pathsep}{os.defpath}",
            "HOME": str(self.scratch),
            # Ours are many and slow to load; the project needs none.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }


BARE_PYTHON = (sys.executable, "-S")
"""Without third-party packages, pytest for one: unittest runs the tests, and it starts fast."""
FULL_PYTHON = (sys.executable,)


def transcript(messages: list[Message]) -> str:
    """Show a conversation, for the message of a test that fails."""
    lines: list[str] = []
    for message in messages:
        match message:
            case AssistantMessage():
                lines.append(f"> {message.text}")
                lines += [f"  {call.name} {dict(call.arguments)}" for call in message.tool_calls]
            case ToolResultMessage():
                lines.append(f"  = {text_of(message.content)}")
            case _:
                continue
    return "\n".join(lines)
