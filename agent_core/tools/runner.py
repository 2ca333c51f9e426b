"""Runs one tool call: check, hooks, permission, the tool itself, hooks again; always one outcome."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agent_core.events import ToolStatus
from agent_core.hooks import (
    ArgumentsReplaced,
    GoOn,
    ResultReplaced,
    ToolBlocked,
    ToolCalled,
    ToolCallOutcome,
    ToolResultOutcome,
    ToolReturned,
)
from agent_core.kernel import Clock, JsonObject
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import scrub
from agent_core.kernel.truncation import truncate_head
from agent_core.messages import Text, ToolCall, UserContent
from agent_core.tools.port import Tool, ToolContext, ToolResult, error_result
from agent_core.workspace.permission import Allowed, PermissionPolicy, Refused

MOST_BYTES = 64 * 1024
"""No tool gives a model more; the built-in ones stay below by themselves."""

log = logging.getLogger(__name__)


class ToolHooks(Protocol):
    """Those who may block a call or change its arguments and result; they never raise."""

    async def tool_called(self, called: ToolCalled) -> ToolCallOutcome:
        """Ask whether the call may run."""
        ...

    async def tool_returned(self, returned: ToolReturned) -> ToolResultOutcome:
        """Ask about its result."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What became of a call."""

    status: ToolStatus
    result: ToolResult
    duration_ms: int | None
    """Wall time of the tool itself; None when it did not run."""

    @classmethod
    def without_run(
        cls, status: ToolStatus, text: str, *, duration_ms: int | None = None
    ) -> "ToolOutcome":
        """Make the outcome of a call that did not run, or not to its end."""
        return cls(status=status, result=error_result(text), duration_ms=duration_ms)


class ToolRunner:
    """Runs the calls of one run. The tools may change between calls."""

    def __init__(
        self,
        *,
        tools: Callable[[], Mapping[str, Tool]],
        hooks: ToolHooks,
        policy: PermissionPolicy,
        clock: Clock,
        context: Callable[[ToolCall, Callable[[str], None]], ToolContext],
    ) -> None:
        self._tools = tools
        self._hooks = hooks
        self._policy = policy
        self._clock = clock
        self._context = context

    def parallel_safe(self, name: str) -> bool:
        """Tell whether calls of a tool may run beside others."""
        tool = self._tools().get(name)
        return tool is not None and tool.spec.parallel_safe

    def runs_processes(self, name: str) -> bool:
        """Tell whether a tool starts processes, which are interrupted when the user speaks."""
        tool = self._tools().get(name)
        return tool is not None and tool.spec.kind == "execute"

    def title(self, call: ToolCall) -> str:
        """Say in a few words what a call does."""
        tool = self._tools().get(call.name)
        return call.name if tool is None else tool.title(call.arguments)

    async def run(
        self,
        call: ToolCall,
        *,
        running: Callable[[JsonObject], None],
        output: Callable[[str], None],
    ) -> ToolOutcome:
        """Run a call. Never raises but for cancellation, after which no process of it is left.

        Args:
            call: What the model asked for.
            running: Told the checked arguments when the call passed every check.
            output: Told live output.
        """
        tools = self._tools()
        tool = tools.get(call.name)
        if tool is None:
            known = ", ".join(tools)
            return ToolOutcome.without_run(
                "error", f"Tool {call.name} not found. There are: {known}."
            )
        if call.arguments_error is not None:
            text = f"Invalid arguments for tool {call.name}: {call.arguments_error}"
            return ToolOutcome.without_run("error", text)
        try:
            arguments = tool.check(call.arguments)
            allowed = await self._ask(tool, call, arguments)
        except TillerError as error:
            return ToolOutcome.without_run("error", str(error))
        if isinstance(allowed, ToolOutcome):
            return allowed
        running(allowed)
        return await self._run(tool, call, allowed, output)

    async def _ask(
        self, tool: Tool, call: ToolCall, arguments: JsonObject
    ) -> JsonObject | ToolOutcome:
        """Ask hooks and policy; gives the arguments to run with, or why the call must not run."""
        called = ToolCalled(call=call.id, tool=call.name, arguments=arguments)
        match await self._hooks.tool_called(called):
            case ToolBlocked(reason=reason):
                return ToolOutcome.without_run("blocked", reason)
            case ArgumentsReplaced(arguments=replaced):
                arguments = tool.check(replaced)
            case GoOn():
                pass
        match await self._judge(tool, call, arguments):
            case Refused(reason=reason):
                return ToolOutcome.without_run("blocked", reason)
            case Allowed():
                return arguments

    async def _judge(self, tool: Tool, call: ToolCall, arguments: JsonObject) -> Allowed | Refused:
        try:
            return await self._policy.judge(
                tool=call.name, kind=tool.spec.kind, arguments=arguments
            )
        except Exception as error:
            log.exception("the permission check of %s failed", call.name)
            return Refused(
                reason=f"the permission check failed ({type(error).__name__}), which means no"
            )

    async def _run(
        self, tool: Tool, call: ToolCall, arguments: JsonObject, output: Callable[[str], None]
    ) -> ToolOutcome:
        begun_s = self._clock.monotonic_s()
        try:
            result = await tool.run(arguments, self._context(call, output))
        except TillerError as error:
            result = error_result(str(error))
        except Exception as error:
            log.exception("tool %s failed unexpectedly", call.name)
            result = error_result(f"Tool {call.name} failed: {type(error).__name__}: {error}")
        took_ms = round((self._clock.monotonic_s() - begun_s) * 1000)
        result = _bounded(await self._shape(call, arguments, result))
        status: ToolStatus = "error" if result.is_error else "ok"
        return ToolOutcome(status=status, result=result, duration_ms=took_ms)

    async def _shape(self, call: ToolCall, arguments: JsonObject, result: ToolResult) -> ToolResult:
        returned = ToolReturned(
            call=call.id,
            tool=call.name,
            arguments=arguments,
            content=result.content,
            details=result.details,
            is_error=result.is_error,
        )
        match await self._hooks.tool_returned(returned):
            case ResultReplaced(content=content, details=details, is_error=is_error):
                return ToolResult(
                    content=result.content if content is None else content,
                    details=result.details if details is None else details,
                    is_error=result.is_error if is_error is None else is_error,
                )
            case GoOn():
                return result


def _bounded(result: ToolResult) -> ToolResult:
    content = tuple(_bounded_part(part) for part in result.content)
    return ToolResult(content=content, details=result.details, is_error=result.is_error)


def _bounded_part(part: UserContent) -> UserContent:
    if not isinstance(part, Text):
        return part
    text = scrub(part.text)
    if len(text.encode()) <= MOST_BYTES:
        return part if text == part.text else Text(text=text)
    cut = truncate_head(text, max_bytes=MOST_BYTES)
    return Text(text=f"{cut.content}\n[Output cut at {MOST_BYTES} bytes]")
