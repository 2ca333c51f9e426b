"""Runs one tool call: arguments checked, permission asked, the result limited."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import cast

import anyio
from msgspec.structs import replace

from agent_core.events import Answers, QuestionLine, ToolStatus
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
from agent_core.hooks.calls import HookAbandoned, HookCall, apart, within_limit
from agent_core.kernel import Clock, JsonObject, JsonValue, RunId
from agent_core.kernel.errors import ArgumentsInvalid, TillerError
from agent_core.kernel.json import LoneSurrogate, has_lone_surrogate, scrub
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    byte_count,
    cut_bytes,
    for_model,
    format_size,
    one_line,
)
from agent_core.kernel.values import Value
from agent_core.messages import Text, ToolCall, UserContent
from agent_core.tools.port import CheckedCall, Tool, ToolContext, ToolResult, error_result
from agent_core.workspace.permissions.call_permission import Allowed, CallRefused, PermissionPolicy

NOTICE_BYTES = 4_096
"""Bytes that a tool may add to the bounded text: its notices and its last line."""


def shaped(result: ToolResult) -> ToolResult:
    """Return a result whose words fit the bound and can be encoded.

    Tools bound their own output in their own way; this holds for those that do not.
    """
    content = tuple(_scrubbed(part) for part in result.content)
    total = sum(byte_count(part.text) for part in content if isinstance(part, Text))
    if total > DEFAULT_MAX_BYTES + NOTICE_BYTES:
        content = _cut(content, total=total)
    return replace(result, content=content, details=scrub_json(result.details))


def _scrubbed(part: UserContent) -> UserContent:
    if not isinstance(part, Text):
        return part
    text = for_model(scrub(part.text))
    return part if text == part.text else replace(part, text=text)


def _cut(content: Sequence[UserContent], *, total: int) -> tuple[UserContent, ...]:
    room = DEFAULT_MAX_BYTES
    kept: list[UserContent] = []
    for part in content:
        if not isinstance(part, Text):
            kept.append(part)
            continue
        text = cut_bytes(part.text, room)
        room -= byte_count(text)
        if text:
            kept.append(replace(part, text=text))
    limit = format_size(DEFAULT_MAX_BYTES)
    kept.append(
        Text(text=f"\n\n[Output cut: the first {limit} of {format_size(total)} are shown.]")
    )
    return tuple(kept)


def scrub_json(value: JsonValue) -> JsonValue:
    """Return JSON that every encoding takes: lone surrogates in its texts become U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else scrub(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict | Mapping):
        scrubbed: dict[str, JsonValue] = {}
        for key, item in value.items():
            plain = item is None or isinstance(item, int | float)
            scrubbed[key if key.isascii() else scrub(key)] = item if plain else scrub_json(item)
        return scrubbed
    return [scrub_json(item) for item in value]


BLOCKED = "Tool execution was blocked"
TITLE_CHARS = 200
DETAILS_S = 1.0
"""How long a call waits for the details to show while it runs."""

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


CallLimiter = AbstractAsyncContextManager[ToolOutcome | None]
"""Limits how many calls run at the same time; entering it returns the outcome of a call that must not run any more, or None."""


class CallLimit(Value, frozen=True, kw_only=True):
    """Time limit of a call, without the time in which a person is asked."""

    limit_s: float
    grace_s: float
    """How long the tool may take to end after its cancellation; then it is abandoned."""


def no_limit(name: str) -> CallLimit | None:
    """Return no limit."""
    del name
    return None


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
        limit: Callable[[str], CallLimit | None] = no_limit,
    ) -> None:
        """Create a runner.

        Args:
            tools: Returns the tools by name.
            hooks: Asked about each call.
            policy: Judges each call.
            clock: Measures how long a call takes.
            context: Returns the context of a call.
            run: The run of the calls.
            limit: Returns the time limit of a tool, by its name; None: it has none, or its own.
        """
        self._tools = tools
        self._hooks = hooks
        self._policy = policy
        self._clock = clock
        self._context = context
        self._run_id = run
        self._limit = limit

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
        running: Callable[[JsonObject, JsonObject | None], None],
        output: Callable[[str], None],
        limiter: CallLimiter | None = None,
    ) -> ToolOutcome:
        """Run a call. Raises nothing but cancellation, after which no process of the call is left.

        Args:
            call: The call as the model requested it.
            running: Called when the call has passed every check, with the checked arguments and the details that are there
                before it runs.
            output: Called with live output, while the tool runs and not after.
            limiter: Entered when the call has passed every check, and left when it is over; None: nothing is waited for.
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
            allowed = await self._ask(tool, call, _checked(tool, call.arguments))
        except Exception as error:  # noqa: BLE001 - the fence around tools: a failed check is a result
            text, happened = _failure(call, error)
            return ToolOutcome.without_run("error", text, happened=happened)
        if isinstance(allowed, ToolOutcome):
            return allowed
        async with limiter or nullcontext() as refused:
            if refused is not None:
                return refused
            running(allowed.arguments, await _early_details(call, allowed))
            begun = ToolBegun(call=call.id, tool=call.name, arguments=allowed.arguments)
            _ = await self._hooks.ask(begun)
            return await self._run(call, allowed, output)

    async def _ask(
        self, tool: Tool, call: ToolCall, checked: CheckedCall
    ) -> CheckedCall | ToolOutcome:
        """Ask hooks and policy; return the call to run, or why it must not run."""
        called = ToolCalled(call=call.id, tool=call.name, arguments=checked.arguments)
        match await self._asked(called):
            case ToolBlocked(reason=reason):
                return ToolOutcome.without_run("blocked", reason or BLOCKED)
            case ArgumentsReplaced(arguments=replaced):
                checked = _checked(tool, replaced)
            case GoOn():
                pass
        match await self._judge(tool, call, checked.arguments):
            case CallRefused(reason=reason, happened=happened):
                return ToolOutcome.without_run("blocked", reason or BLOCKED, happened=happened)
            case Allowed():
                return checked

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
        self, call: ToolCall, checked: CheckedCall, output: Callable[[str], None]
    ) -> ToolOutcome:
        live = _LiveOutput(output)
        begun_s = self._clock.monotonic_s()
        try:
            context, limit = self._context(call, live.show), self._limit(call.name)
            if limit is None:
                result = await checked.run(context)
            else:
                result = await _run_limited(call, checked, context, limit)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the fence around tools: a failure is a result
            text, happened = _failure(call, error)
            result = error_result(text, happened=happened)
        finally:
            live.over = True
        took_ms = round((self._clock.monotonic_s() - begun_s) * 1000)
        result = await self._shape(call, checked.arguments, shaped(result))
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
                replaced = ToolResult(
                    content=result.content if content is None else content,
                    details=result.details if details is None else details,
                    is_error=result.is_error if is_error is None else is_error,
                )
                return shaped(replaced)
            case GoOn():
                return result


async def _early_details(call: ToolCall, checked: CheckedCall) -> JsonObject | None:
    """Return the details that are there before a call runs; they are only for show, and nothing waits long for them."""
    if checked.details is None:
        return None
    try:
        with anyio.move_on_after(DETAILS_S):
            return await checked.details()
    except Exception:
        log.exception("the details of a call of %s failed", call.name)
    return None


async def _run_limited(
    call: ToolCall, checked: CheckedCall, context: ToolContext, limit: CallLimit
) -> ToolResult:
    """Run a tool in a task of its own, within its time; one that ignores its cancellation is abandoned.

    Raises:
        BaseException: Any exception of the tool.
    """
    timer = HookCall(call.name, "tool", limit.limit_s, grace_s=limit.grace_s)
    ended: list[ToolResult | BaseException] = []

    async def ask(
        questions: Sequence[QuestionLine],
        /,
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        with timer.paused():
            return await context.ask(questions, blocking=blocking, timeout_s=timeout_s)

    async def steps() -> ToolResult:
        return await checked.run(replace(context, ask=ask, pause=timer.paused))

    async def work() -> None:
        try:
            ended.append(await within_limit(steps(), timer))
        except BaseException as error:  # noqa: BLE001 - the fence around tools: raised to the caller
            ended.append(error)

    await apart(work(), stop=timer.give_up)
    (outcome,) = ended
    if timer.is_out_of_time:
        return _out_of_time(call, limit.limit_s, is_abandoned=isinstance(outcome, HookAbandoned))
    if isinstance(outcome, anyio.get_cancelled_exc_class()):
        message = "it cancelled the task that it ran in"
        raise RuntimeError(message) from outcome  # noqa: TRY004 - a cancellation, no wrong type
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _out_of_time(call: ToolCall, limit_s: float, *, is_abandoned: bool) -> ToolResult:
    """Return the result of a call whose time was over."""
    log.warning("tool %s was stopped after %g s (toolTimeoutS)", call.name, limit_s)
    still = " It ignores its cancellation and may still be working." if is_abandoned else ""
    happened = f"{call.name} was stopped because it did not finish within {limit_s:g} s (toolTimeoutS).{still}"
    text = (
        f"{happened} How much of it was done is not known: look at what is there before you repeat it, "
        "ask for less in one call, or go on without it. The user can raise toolTimeoutS in the settings."
    )
    return error_result(text, happened=happened)


def _checked(tool: Tool, arguments: JsonObject) -> CheckedCall:
    """Return the call with its arguments as the tool takes them.

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
