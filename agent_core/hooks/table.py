"""The hooks of a session, by point, in the order in which they are asked."""

from collections.abc import Awaitable, Callable, Iterable
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar

from agent_core.hooks.call import HookCall
from agent_core.hooks.catalogue import POINTS
from agent_core.hooks.kinds import HookInput, HookOutcome
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
