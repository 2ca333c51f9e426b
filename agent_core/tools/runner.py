"""Runs one tool call: check, hooks, permission, the tool itself, hooks again; always one outcome."""

import logging
from collections.abc import Callable, Mapping
from typing import cast

from agent_core.events import ToolStatus
from agent_core.hooks import (
    ArgumentsReplaced,
    GoOn,
    Hooks,
    ResultReplaced,
    ToolBegun,
    ToolBlocked,
    ToolCalled,
    ToolCallOutcome,
    ToolReturned,
)
from agent_core.kernel import Clock, JsonObject, RunId
from agent_core.kernel.errors import ArgumentsInvalid, TillerError
from agent_core.kernel.json import LoneSurrogate, has_lone_surrogate
from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import one_line
from agent_core.messages import ToolCall
from agent_core.tools.port import Tool, ToolContext, ToolResult, error_result
from agent_core.tools.result_limits import shaped
from agent_core.workspace.permissions.call_permission import Allowed, CallRefused, PermissionPolicy

BLOCKED = "Tool execution was blocked"
TITLE_CHARS = 200

log = logging.getLogger(__name__)


class ToolOutcome(Value, frozen=True, kw_only=True):
    """Outcome of a call."""

    status: ToolStatus
    result: ToolResult
    duration_ms: int | None
    """Wall time of the tool itself; None when it did not run."""

    @classmethod
    def without_run(
        cls,
        status: ToolStatus,
        text: str,
        *,
        duration_ms: int | None = None,
        happened: str | None = None,
    ) -> "ToolOutcome":
        """Make the outcome of a call that did not run, or not to its end; `happened` is the text for people."""
        result = error_result(text, happened=happened)
        return cls(status=status, result=shaped(result), duration_ms=duration_ms)


class ToolRunner:
    """Runs the calls of one run. The tools may change between calls."""

    def __init__(
        self,
        *,
        tools: Callable[[], Mapping[str, Tool]],
        hooks: Hooks,
        policy: PermissionPolicy,
        clock: Clock,
        context: Callable[[ToolCall, Callable[[str], None]], ToolContext],
        run: RunId | None = None,
    ) -> None:
        self._tools = tools
        self._hooks = hooks
        self._policy = policy
        self._clock = clock
        self._context = context
        self._run_id = run

    def parallel_safe(self, name: str) -> bool:
        """Return whether calls of a tool may run beside others."""
        tool = self._tools().get(name)
        return tool is not None and tool.spec.parallel_safe

    def runs_processes(self, name: str) -> bool:
        """Return whether a tool starts processes, which are interrupted when the user speaks."""
        tool = self._tools().get(name)
        return tool is not None and tool.spec.kind == "execute"

    def title(self, call: ToolCall) -> str:
        """Describe in one line what a call does."""
        tool = self._tools().get(call.name)
        title = ""
        if tool is not None:
            try:
                title = tool.title(call.arguments)
            except Exception:
                # A title is only for show, and foreign tools may stumble over odd arguments.
                log.exception("the title of a call of %s failed", call.name)
        return one_line(title)[:TITLE_CHARS] or call.name

    async def run(
        self,
        call: ToolCall,
        *,
        running: Callable[[JsonObject], None],
        output: Callable[[str], None],
    ) -> ToolOutcome:
        """Run a call. Raises nothing but cancellation, after which no process of the call is left.

        Args:
            call: The call as the model requested it.
            running: Called with the checked arguments when the call has passed every check.
            output: Called with live output, while the tool runs and not after.
        """
        tools = self._tools()
        tool = tools.get(call.name)
        if tool is None:
            tool_names = ", ".join(tools) or "none"
            return ToolOutcome.without_run(
                "error", f"Tool {call.name} not found. There are: {tool_names}."
            )
        if call.arguments_error is not None:
            text = f"Invalid arguments for tool {call.name}: {call.arguments_error}"
            return ToolOutcome.without_run("error", text)
        try:
            arguments = _checked(tool, call.arguments)
            allowed = await self._ask(tool, call, arguments)
        except Exception as error:  # noqa: BLE001 - the fence around tools: a failed check is a result
            text, happened = _failure(call, error)
            return ToolOutcome.without_run("error", text, happened=happened)
        if isinstance(allowed, ToolOutcome):
            return allowed
        running(allowed)
        _ = await self._hooks.ask(ToolBegun(call=call.id, tool=call.name, arguments=allowed))
        return await self._run(tool, call, allowed, output)

    async def _ask(
        self, tool: Tool, call: ToolCall, arguments: JsonObject
    ) -> JsonObject | ToolOutcome:
        """Ask hooks and policy; gives the arguments to run with, or why the call must not run."""
        called = ToolCalled(call=call.id, tool=call.name, arguments=arguments)
        match await self._asked(called):
            case ToolBlocked(reason=reason):
                return ToolOutcome.without_run("blocked", reason or BLOCKED)
            case ArgumentsReplaced(arguments=replaced):
                arguments = _checked(tool, replaced)
            case GoOn():
                pass
        match await self._judge(tool, call, arguments):
            case CallRefused(reason=reason, happened=happened):
                return ToolOutcome.without_run("blocked", reason or BLOCKED, happened=happened)
            case Allowed():
                return arguments

    async def _asked(self, called: ToolCalled) -> ToolCallOutcome:
        try:
            return await self._hooks.ask(called)
        except Exception as error:
            log.exception("the hooks of a call of %s failed", called.tool)
            return ToolBlocked(
                reason=f"{called.tool} was not run: a check failed ({type(error).__name__}), and a check that fails means no."
            )

    async def _judge(
        self, tool: Tool, call: ToolCall, arguments: JsonObject
    ) -> Allowed | CallRefused:
        try:
            return await self._policy.judge(
                call=call.id,
                run=self._run_id,
                tool=call.name,
                kind=tool.spec.kind,
                arguments=arguments,
            )
        except Exception as error:
            log.exception("the permission check of %s failed", call.name)
            return CallRefused(
                reason=f"the permission check failed ({type(error).__name__}), which means no"
            )

    async def _run(
        self, tool: Tool, call: ToolCall, arguments: JsonObject, output: Callable[[str], None]
    ) -> ToolOutcome:
        live = _LiveOutput(output)
        begun_s = self._clock.monotonic_s()
        try:
            result = await tool.run(arguments, self._context(call, live.show))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the fence around tools: a failure is a result
            text, happened = _failure(call, error)
            result = error_result(text, happened=happened)
        finally:
            live.over = True
        took_ms = round((self._clock.monotonic_s() - begun_s) * 1000)
        result = shaped(await self._shape(call, arguments, shaped(result)))
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
        try:
            outcome = await self._hooks.ask(returned)
        except Exception:
            log.exception("the hooks of a result of %s failed", call.name)
            return result
        match outcome:
            case ResultReplaced(content=content, details=details, is_error=is_error):
                return ToolResult(
                    content=result.content if content is None else content,
                    details=result.details if details is None else details,
                    is_error=result.is_error if is_error is None else is_error,
                )
            case GoOn():
                return result


def _checked(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return the arguments as the tool takes them.

    Raises:
        ArgumentsInvalid: They do not fit, or hold half of a character: replaced, it would name another file.
    """
    if has_lone_surrogate(arguments):
        message = f"Invalid arguments for tool {tool.spec.name}: {LoneSurrogate()}."
        raise ArgumentsInvalid(message)
    return tool.check(arguments)


class _LiveOutput:
    """Passes live output on until the call is over."""

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self.over = False

    def show(self, text: str) -> None:
        if text and not self.over:
            self._output(text)


def _failure(call: ToolCall, error: BaseException) -> tuple[str, str | None]:
    """Return the failure of a tool, for the model and for people; log an unexpected exception."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", error.exceptions)
        if len(inner) == 1:
            return _failure(call, inner[0])
    if isinstance(error, TillerError):
        return str(error), error.happened
    log.error("tool %s failed unexpectedly", call.name, exc_info=error)
    return f"Tool {call.name} failed: {type(error).__name__}: {error}", None
