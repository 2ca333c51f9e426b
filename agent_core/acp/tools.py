"""The tools that stand for what an external agent does: permission is asked for them as for the tools of any model."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from pydantic import Field

from agent_core.acp.requests import (
    COMMAND,
    EDIT,
    LOOK,
    READ,
    START,
    STEP,
    TERMINAL,
    other_tool,
)
from agent_core.acp.steps import AgentStep
from agent_core.acp.terminals import AgentTerminals
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import NotText
from agent_core.kernel.json import as_text
from agent_core.messages import Text
from agent_core.tools.arguments import ModelTool, ToolArguments, ToolArgumentsT, schema_of
from agent_core.tools.command import start_bash
from agent_core.tools.port import Tool, ToolContext, ToolResult, ToolSpec, error_result, text_result
from agent_core.workspace import FileBytes
from agent_core.workspace.permissions.call_permission import AskedNeeds, ToolKind

FAILED = "failed"


class AgentWork(Protocol):
    """An agent, as the tools see it."""

    @property
    def terminals(self) -> AgentTerminals:
        """Commands that run for the agent."""
        ...

    def answer_with(self, call: str, content: str) -> None:
        """Keep the text that the agent asked for."""
        ...

    def step(self, call: str) -> AgentStep:
        """Return a tool call that the agent has made."""
        ...


class AgentStartArguments(ToolArguments):
    """Arguments of `agent_start`."""

    command: str
    needs: list[str] = Field(default=[])


class AgentStepArguments(ToolArguments):
    """Arguments of `agent_step`."""

    title: str = ""
    kind: str = ""
    request: str


class AgentCommandArguments(ToolArguments):
    """Arguments of `agent_permission_command`."""

    command: str
    needs: list[str] = Field(default=[])
    title: str = ""
    request: str


class AgentTerminalArguments(ToolArguments):
    """Arguments of `agent_terminal`."""

    command: str
    needs: tuple[AskedNeeds, ...] = Field(default=())
    limit: int | None = None
    request: str


class AgentFileArguments(ToolArguments):
    """Arguments of `agent_permission_edit` and `agent_permission_read`."""

    path: str
    title: str = ""
    request: str


class AgentPermissionArguments(ToolArguments):
    """Arguments of the tool for everything else."""

    title: str = ""
    kind: str = ""
    input: dict[str, object] = Field(default={})
    request: str


class AgentReadArguments(ToolArguments):
    """Arguments of `agent_read`."""

    path: str
    line: int | None = None
    limit: int | None = None
    request: str


def agent_tools(agent: str, work: Callable[[], AgentWork]) -> Sequence[Tool]:
    """Make the tools.

    Args:
        agent: Name of the agent.
        work: Returns the agent.
    """

    async def read(arguments: AgentReadArguments, context: ToolContext) -> ToolResult:
        return await _read(arguments, context, work())

    async def run(arguments: AgentTerminalArguments, context: ToolContext) -> ToolResult:
        return await _run(arguments, context, work())

    async def step(arguments: AgentStepArguments, _: ToolContext) -> ToolResult:
        done = work().step(arguments.request)
        details: dict[str, JsonValue] = {"kind": done.kind, "status": done.status}
        if done.status == FAILED:
            return error_result(done.output or "it failed", details=details)
        text = Text(text=done.output or "done")
        return ToolResult(content=(text, *done.images), details=details)

    return (
        _tool(START, AgentStartArguments, "execute", _allowed, f"start external agent {agent}"),
        _tool(STEP, AgentStepArguments, "read", step, "tool"),
        _tool(TERMINAL, AgentTerminalArguments, "execute", run, "command"),
        _tool(COMMAND, AgentCommandArguments, "execute", _allowed, "command"),
        _tool(EDIT, AgentFileArguments, "edit", _allowed, "edit"),
        _tool(LOOK, AgentFileArguments, "read", _allowed_inside, "read"),
        _tool(other_tool(agent), AgentPermissionArguments, "other", _allowed, "tool"),
        _tool(READ, AgentReadArguments, "read", read, "read"),
    )


def _tool(
    name: str,
    arguments: type[ToolArgumentsT],
    kind: ToolKind,
    execute: Callable[[ToolArgumentsT, ToolContext], Awaitable[ToolResult]],
    otherwise: str,
) -> Tool:
    def titled(given: JsonObject) -> str:
        for key in () if name == START else ("title", "command", "path"):
            if text := as_text(given.get(key)):
                return text
        return otherwise

    spec = ToolSpec(name=name, description=otherwise, parameters=schema_of(arguments), kind=kind)
    return ModelTool(spec=spec, arguments=arguments, titled=titled, execute=execute)


async def _allowed(_: ToolArguments, context: ToolContext) -> ToolResult:
    """Do nothing: the call was judged, and the agent does the work."""
    del context
    return text_result("allowed")


async def _allowed_inside(arguments: AgentFileArguments, context: ToolContext) -> ToolResult:
    """Check that a file is one of the workspace."""
    _ = await context.files.resolve(arguments.path, "read")
    return text_result("allowed")


async def _run(
    arguments: AgentTerminalArguments, context: ToolContext, work: AgentWork
) -> ToolResult:
    """Start a command, which goes on after the call."""
    work.terminals.check_room()
    _ = await context.processes.before_start()
    process = await start_bash(
        arguments.command,
        context.workspace,
        options=context.options,
        needs=frozenset(arguments.needs),
    )
    terminal = work.terminals.add(process, limit_bytes=arguments.limit)
    work.answer_with(arguments.request, terminal)
    return text_result(f"started in {terminal}")


async def _read(arguments: AgentReadArguments, context: ToolContext, work: AgentWork) -> ToolResult:
    files = context.files
    path = await files.resolve(arguments.path, "read")
    file = await files.read(path)
    if isinstance(file, FileBytes):
        message = f"{arguments.path} is not a text file"
        raise NotText(message)
    text = file.text
    context.seen.put(path, text)
    if arguments.line is not None or arguments.limit is not None:
        lines, first = text.splitlines(keepends=True), max((arguments.line or 1) - 1, 0)
        last = len(lines) if arguments.limit is None else first + max(arguments.limit, 0)
        text = "".join(lines[first:last])
    work.answer_with(arguments.request, text)
    return text_result(f"{len(text)} characters")
