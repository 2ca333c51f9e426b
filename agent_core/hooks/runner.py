"""The hooks of a session by point, and the runner that asks them in order and makes one answer of theirs."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from msgspec.structs import replace

from agent_core.hooks.calls import (
    HookCall,
    HookFailure,
    HookWatchdog,
    OutOfTime,
    Threads,
    apart,
    fault,
)
from agent_core.hooks.catalogue import POINTS, Point
from agent_core.hooks.kinds import Chain, Collect, FirstWins, GoOn, HookInput, HookOutcome, Veto
from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value

InputT = TypeVar("InputT", bound=HookInput[Any])  # pyright: ignore[reportExplicitAny] - of any point
OutcomeT = TypeVar("OutcomeT", bound=HookOutcome)


def current_call(call: HookCall) -> object:
    """Return hooks the bare call as their context."""
    return call


class Hook(Value, Generic[InputT, OutcomeT], frozen=True):
    """A function that is asked at a point."""

    owner: str
    """Whose it is: the name that its failures are reported under, and by which it is removed."""
    run: Callable[[InputT, Any], Awaitable[OutcomeT | None] | OutcomeT | None]  # pyright: ignore[reportExplicitAny] - what `context` makes
    """One that is `async` is cancelled when its time is over. Any other runs in a thread, and is left to itself then."""
    context: Callable[[HookCall], object] = current_call
    """Makes what the function is given beside the value, anew for each call."""

    @property
    def is_async(self) -> bool:
        """Return whether calling the function takes no time."""
        return iscoroutinefunction(self.run) or iscoroutinefunction(
            getattr(self.run, "__call__", None)  # noqa: B004 - an object whose call is `async`
        )


AnyHook = Hook[Any, Any]  # pyright: ignore[reportExplicitAny] - of any point


class Entered(Value, frozen=True):
    """A hook at its place."""

    hook: AnyHook
    is_async: bool


class HookTable:
    """The hooks of a session; it may grow and shrink while hooks are asked."""

    def __init__(self) -> None:
        self._hooks: dict[type[HookInput[HookOutcome]], tuple[Entered, ...]] = {}

    def add(self, hook: Hook[InputT, OutcomeT], at: type[InputT]) -> None:
        """Ask a function at a point from now on, after those that are there.

        Raises:
            UsageError: Hooks are not asked about such values.
        """
        if at not in POINTS:
            names = ", ".join(sorted(one.__name__ for one in POINTS))
            message = f"{at!r} is no point of hooks; there are {names}"
            raise UsageError(message)
        self._hooks[at] = (*self.at(at), Entered(hook, hook.is_async))

    def remove(self, owner: str) -> None:
        """Remove an owner's hooks from all points; a call in progress finishes."""
        for at, hooks in self._hooks.items():
            self._hooks[at] = tuple(one for one in hooks if one.hook.owner != owner)

    def discard(self, hooks: Iterable[AnyHook]) -> None:
        """Remove exactly these hooks from all points, and no others that are reported under the same name."""
        gone = {id(hook) for hook in hooks}
        for at, there in self._hooks.items():
            self._hooks[at] = tuple(one for one in there if id(one.hook) not in gone)

    def at(self, point: type[HookInput[HookOutcome]]) -> tuple[Entered, ...]:
        """Return the functions at a point, in order."""
        return self._hooks.get(point, ())


SHORT_LIMIT_S = 5.0
LONG_LIMIT_S = 120.0
"""At points around compaction and providers, where hooks may ask a model."""
GO_ON = GoOn()

CombinedT = TypeVar("CombinedT", bound=HookOutcome)
One = TypeVar("One", bound=HookOutcome)


class HookLimits(Value, frozen=True, kw_only=True):
    """How long each hook may take, in seconds; waiting through its context for others does not count."""

    short_s: float = SHORT_LIMIT_S
    long_s: float = LONG_LIMIT_S
    by_point: Mapping[str, float] = msgspec.field(default_factory=dict[str, float])
    """By the name of the point."""

    def of(self, point: Point) -> float:
        """Return the limit at a point."""
        usual_s = self.long_s if point.limit == "long" else self.short_s
        return self.by_point.get(point.name, usual_s)


class NoHooks:
    """Runner without hooks."""

    async def ask(self, value: HookInput[CombinedT], /) -> CombinedT:
        """Return `GoOn`."""
        return _go_on(value)

    def listens(self, point: type[HookInput[HookOutcome]], /) -> bool:
        """Return False."""
        del point
        return False


class HookRunner:
    """Asks the hooks of a table. One for each session; the table may grow and shrink meanwhile."""

    def __init__(
        self,
        table: HookTable,
        *,
        report: Callable[[HookFailure], None],
        limits: HookLimits | None = None,
    ) -> None:
        self._table = table
        self._report = report
        self._limits = limits or HookLimits()
        self._threads = Threads()

    def listens(self, point: type[HookInput[HookOutcome]], /) -> bool:
        """Return whether anybody is asked at a point, for what costs something to prepare."""
        return bool(self._table.at(point))

    async def ask(self, value: HookInput[CombinedT], /) -> CombinedT:
        """Ask the hooks of a point; gives `GoOn` when there are none, or none has anything to say.

        Never raises but for cancellation, which ends the hook that is being asked.
        """
        entered = self._table.at(type(value))
        if not entered:
            return GO_ON  # pyright: ignore[reportReturnType] - `GoOn` is in the union of every point
        point = POINTS[type(value)]
        asking = _Asking(
            value.isolate(),
            point,
            self._threads,
            limit_s=self._limits.of(point),
            report=self._report,
        )
        asking.left = list(reversed(entered))
        while asking.is_open:
            # A task of their own: what hooks do to the task that they run in is nobody else's matter.
            await apart(asking.go_on(), stop=asking.stop)
            asking.check_end()
        if asking.answer is None:
            return _go_on(value)
        return asking.answer  # pyright: ignore[reportReturnType] - checked to be in the union of the point


def laid_over(earlier: HookOutcome, later: One) -> One:
    """Merge two answers of the same class: fields that are None in the later one come from the earlier one.

    Fields named in `collected` are joined instead.
    """
    parts: dict[str, Any] = {}  # pyright: ignore[reportExplicitAny] - the values of any fields
    for name in later.__struct_fields__:
        before: Any = getattr(earlier, name)  # pyright: ignore[reportExplicitAny, reportAny] - the same
        now: Any = getattr(later, name)  # pyright: ignore[reportExplicitAny, reportAny] - the same
        if name in later.collected:
            parts[name] = {**before, **now} if isinstance(now, Mapping) else (*before, *now)
        elif now is None:
            parts[name] = before
    return replace(later, **parts)


def _go_on(value: HookInput[CombinedT]) -> CombinedT:
    del value
    return GO_ON  # pyright: ignore[reportReturnType] - `GoOn` is in the union of every point


class _Asking:
    """The hooks of one point being asked about one value."""

    def __init__(
        self,
        value: HookInput[HookOutcome],
        point: Point,
        threads: Threads,
        *,
        limit_s: float,
        report: Callable[[HookFailure], None],
    ) -> None:
        self.answer: HookOutcome | None = None
        self.left: list[Entered] = []
        """The next one last."""
        self._value: HookInput[HookOutcome] = value
        self._point = point
        self._asked: tuple[Entered, HookCall] | None = None
        self._is_stopped = False
        self._is_lenient = point.on_failure == "open"
        """Giving nothing says that there is nothing to say."""
        self._threads = threads
        self._limit_s = limit_s
        self._report = report

    @property
    def is_open(self) -> bool:
        """Return whether there are hooks to ask."""
        return bool(self.left)

    async def go_on(self) -> None:
        """Ask the hooks that are left, until one of them decides or fails: that one may have spoilt the task."""
        patience = HookWatchdog()
        try:
            with patience.scope:
                while self.left and not patience.scope.cancel_called:
                    entered = self.left.pop()
                    call = HookCall(entered.hook.owner, self._point.name, self._limit_s)
                    self._asked = entered, call
                    outcome = await patience.wait(self._steps(entered, call), call)
                    if patience.scope.cancel_called:
                        break
                    if isinstance(outcome, GoOn) or (outcome is None and self._is_lenient):
                        self._asked = None
                    else:
                        self._take(outcome)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
            torn = patience.torn or error
            is_ours = isinstance(torn, OutOfTime)
            self._failed(torn, str(torn) if is_ours else f"{type(torn).__name__}: {torn}")
            return
        if self._asked is not None:
            late = OutOfTime(self._asked[1].why_over, stood=patience.stood)
            self._failed(late, str(late))

    def stop(self) -> None:
        """Ask nobody any more, and cancel the hook that is being asked."""
        self._is_stopped = True
        self.left.clear()
        if self._asked is not None:
            self._asked[1].give_up()

    def check_end(self) -> None:
        """Count a hook that cancelled the task around it as one that failed."""
        if self._asked is not None:
            error = RuntimeError("it cancelled the task that it ran in")
            self._failed(error, str(error))

    def _steps(self, entered: Entered, call: HookCall) -> Coroutine[object, None, object]:
        """Begin a call of a hook."""
        hook = entered.hook
        value = self._value.copy_for_hook()
        context = hook.context(call)
        if not entered.is_async:
            return self._in_thread(hook.owner, partial(hook.run, value, context))
        given: object = hook.run(value, context)
        return given if iscoroutine(given) else _awaited(given)

    async def _in_thread(self, owner: str, work: Callable[[], object]) -> object:
        return await _awaited(await self._threads.run(owner, work))

    def _take(self, outcome: object) -> None:
        """Apply a hook's answer as its class requires; count an answer that does not fit the point as a failure."""
        why = fault(outcome, self._point)
        if why is not None and self._asked is not None:
            function = getattr(self._asked[0].hook.run, "__name__", "the hook")
            why = f"{function} {why}"
        if why is not None or not isinstance(outcome, HookOutcome):
            # Where a failure means no, a forgotten `return` must not count as consent.
            self._failed(TypeError(why), why or "")
            return
        self._asked = None
        match outcome:
            case Veto() | FirstWins():
                self.answer = outcome
                self.left.clear()
            case Chain() | Collect():
                if isinstance(outcome, Chain):
                    self._value = outcome.applied(self._value)  # pyright: ignore[reportUnknownMemberType] - of this point
                self.answer = outcome if self.answer is None else laid_over(self.answer, outcome)  # pyright: ignore[reportUnknownArgumentType] - of this point
            case _:
                self.answer = outcome

    def _failed(self, error: BaseException, text: str) -> None:
        """Report a hook, and let its failure count in the way of the point."""
        asked, self._asked = self._asked, None
        if asked is None or self._is_stopped:
            return
        owner = asked[0].hook.owner
        stood = error.stood if isinstance(error, OutOfTime) else None
        self._report(
            HookFailure(
                owner=owner, point=self._point.name, error=text, exception=error, stood=stood
            )
        )
        refusal = self._value.refusal(owner)
        if refusal is not None:
            self.answer = refusal
            self.left.clear()


async def _awaited(given: object) -> object:
    """Return what something comes to that may have to be awaited."""
    if not isawaitable(given):
        return given
    value: object = await given  # pyright: ignore[reportAny] - foreign
    return value
