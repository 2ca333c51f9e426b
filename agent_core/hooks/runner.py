"""Runs hooks in order, fenced: a hook that crashes or hangs costs its own effect and nothing else.

How outcomes compose, by point:

    input               chain; `InputHandled` stops
    before_agent_start  chain of the system prompt, messages collected
    context             chain
    tool_call           chain of the arguments; the first `ToolBlocked` stops; a failure blocks (fail closed)
    tool_result         chain, part by part
    session_before_compact  the first that is not `GoOn` wins
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Generic, TypeVar

import anyio

from agent_core.hooks.points import (
    ArgumentsReplaced,
    Compacting,
    CompactionCancelled,
    CompactionOutcome,
    ContextBuilt,
    ContextOutcome,
    ContextReplaced,
    GoOn,
    InputHandled,
    InputOutcome,
    InputReplaced,
    InputTyped,
    ResultReplaced,
    RunOutcome,
    RunPrepared,
    RunPreparing,
    SummaryGiven,
    ToolBlocked,
    ToolCalled,
    ToolCallOutcome,
    ToolResultOutcome,
    ToolReturned,
)

HOOK_TIMEOUT_S = 30.0

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class Hook(Generic[In, Out]):
    """A function at a point, and the name that failures are reported under."""

    name: str
    run: Callable[[In], Awaitable[Out]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTable:
    """The hooks of a session by point, each list in the order in which they run."""

    input: list[Hook[InputTyped, InputOutcome]] = field(default_factory=list)
    before_agent_start: list[Hook[RunPreparing, RunOutcome]] = field(default_factory=list)
    context: list[Hook[ContextBuilt, ContextOutcome]] = field(default_factory=list)
    tool_call: list[Hook[ToolCalled, ToolCallOutcome]] = field(default_factory=list)
    tool_result: list[Hook[ToolReturned, ToolResultOutcome]] = field(default_factory=list)
    session_before_compact: list[Hook[Compacting, CompactionOutcome]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFailure:
    """A hook crashed or took too long."""

    hook: str
    point: str
    error: str
    exception: BaseException


class HookRunner:
    """Asks the hooks of a table. One for each session; the table may grow meanwhile."""

    def __init__(
        self,
        table: HookTable,
        *,
        report: Callable[[HookFailure], None],
        timeout_s: float = HOOK_TIMEOUT_S,
    ) -> None:
        self._table = table
        self._report = report
        self._timeout_s = timeout_s

    async def input_typed(self, typed: InputTyped) -> InputOutcome:
        """Ask about the user's words; gives the changed words, or that they are dealt with."""
        now = typed
        for hook in tuple(self._table.input):
            match await self._ask(hook, now, point="input", outcomes=InputOutcome):
                case InputHandled() as handled:
                    return handled
                case InputReplaced(content=content):
                    now = InputTyped(content=content)
                case GoOn() | None:
                    pass
        return GoOn() if now is typed else InputReplaced(content=now.content)

    async def run_preparing(self, preparing: RunPreparing) -> RunPrepared:
        """Ask about a run that is about to start."""
        now = preparing
        prepared = RunPrepared()
        for hook in tuple(self._table.before_agent_start):
            match await self._ask(hook, now, point="before_agent_start", outcomes=RunOutcome):
                case RunPrepared(system=system, messages=messages):
                    now = now if system is None else replace(now, system=system)
                    prepared = RunPrepared(
                        system=prepared.system if system is None else system,
                        messages=prepared.messages + messages,
                    )
                case GoOn() | None:
                    pass
        return prepared

    async def context_built(self, built: ContextBuilt) -> ContextBuilt:
        """Ask about the messages of the next request."""
        now = built
        for hook in tuple(self._table.context):
            match await self._ask(hook, now, point="context", outcomes=ContextOutcome):
                case ContextReplaced(messages=messages):
                    now = ContextBuilt(messages=messages)
                case GoOn() | None:
                    pass
        return now

    async def tool_called(self, called: ToolCalled) -> ToolCallOutcome:
        """Ask whether a tool call may run; a hook that fails means no."""
        now = called
        for hook in tuple(self._table.tool_call):
            match await self._ask(hook, now, point="tool_call", outcomes=ToolCallOutcome):
                case ToolBlocked() as blocked:
                    return blocked
                case ArgumentsReplaced(arguments=arguments):
                    now = replace(now, arguments=arguments)
                case GoOn():
                    pass
                case None:
                    return ToolBlocked(
                        reason=f"{called.tool} was not run: the check {hook.name!r} failed, and a check that fails means no."
                    )
        return GoOn() if now is called else ArgumentsReplaced(arguments=now.arguments)

    async def tool_returned(self, returned: ToolReturned) -> ToolResultOutcome:
        """Ask about a tool's result; gives the result as it is after all hooks."""
        now = returned
        for hook in tuple(self._table.tool_result):
            match await self._ask(hook, now, point="tool_result", outcomes=ToolResultOutcome):
                case ResultReplaced(content=content, details=details, is_error=is_error):
                    now = replace(
                        now,
                        content=now.content if content is None else content,
                        details=now.details if details is None else details,
                        is_error=now.is_error if is_error is None else is_error,
                    )
                case GoOn() | None:
                    pass
        if now is returned:
            return GoOn()
        return ResultReplaced(content=now.content, details=now.details, is_error=now.is_error)

    async def compacting(self, compacting: Compacting) -> CompactionOutcome:
        """Ask about a compaction."""
        for hook in tuple(self._table.session_before_compact):
            match await self._ask(
                hook, compacting, point="session_before_compact", outcomes=CompactionOutcome
            ):
                case CompactionCancelled() | SummaryGiven() as decided:
                    return decided
                case GoOn() | None:
                    pass
        return GoOn()

    async def _ask(
        self, hook: Hook[In, Out], value: In, *, point: str, outcomes: UnionType
    ) -> Out | None:
        """Ask one hook; None when it failed, which has been reported then."""
        with anyio.move_on_after(self._timeout_s) as scope:
            try:
                outcome = await hook.run(value)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
                return self._failed(hook.name, point, error, f"{type(error).__name__}: {error}")
            if isinstance(outcome, outcomes):
                return outcome
            # A forgotten `return` must not count as consent.
            odd = TypeError(f"gave {outcome!r:.200}, which is no outcome of {point}")
            return self._failed(hook.name, point, odd, str(odd))
        if scope.cancelled_caught:
            text = f"no answer within {self._timeout_s:g} s"
            return self._failed(hook.name, point, TimeoutError(text), text)
        return None

    def _failed(self, hook: str, point: str, error: BaseException, text: str) -> None:
        self._report(HookFailure(hook=hook, point=point, error=text, exception=error))
