"""Base classes of hook inputs and outcomes, and the rules that combine several outcomes."""

from typing import ClassVar, Generic, Literal, Protocol, Self, TypeVar

from agent_core.kernel.values import Value

Composition = Literal["notify", "gate", "chain", "first wins", "collect", "last override"]
"""How the answers of several hooks become one.

`notify`: there are none. `gate`: the first one stops, later hooks are not asked. `chain`: each hook sees what the one
before it made. `first wins`: the first one decides, later hooks are not asked. `collect`: all are kept, in order.
`last override`: all are asked, the last one counts.
"""

Out = TypeVar("Out", bound="HookOutcome")
OutCo = TypeVar("OutCo", bound="HookOutcome", covariant=True)  # noqa: PLC0105 - a type, named as one
In = TypeVar("In")


class HookInput(Value, Generic[OutCo], frozen=True):
    """Input of the hooks at one point; `Out` is the closed union of the permitted outcomes."""

    def isolate(self) -> Self:
        """Return a value that the hooks of one point may do with as they like, once for all of them."""
        return self

    def copy_for_hook(self) -> Self:
        """Return a value for one hook to modify; later hooks do not see changes that it makes in place."""
        return self

    def refusal(self, owner: str) -> OutCo | None:
        """Return the answer that the failure of an owner's hook counts as; None: as if it had not been asked."""
        del owner
        return None


class Hooks(Protocol):
    """Those whom parts of a session ask; `HookRunner` is one."""

    async def ask(self, value: HookInput[Out], /) -> Out:
        """Ask the hooks of the value's point; `GoOn` when they have nothing to say. Never raises."""
        ...

    def listens(self, point: "type[HookInput[HookOutcome]]", /) -> bool:
        """Return whether anybody is asked at a point, for what costs something to prepare."""
        ...


class HookOutcome(Value, frozen=True, kw_only=True):
    """Answer of a hook; the base classes below define how it combines with the answers of other hooks."""

    composition: ClassVar[tuple[Composition, ...]] = ()
    collected: ClassVar[tuple[str, ...]] = ()
    """The fields in which the answers of several hooks are put together; of others the last one that is not None counts."""


class GoOn(HookOutcome, frozen=True, kw_only=True):
    """Nothing to change."""


class Veto(HookOutcome, frozen=True):
    """The first such answer stops: later hooks are not asked."""

    composition: ClassVar[tuple[Composition, ...]] = ("gate",)


class FirstWins(HookOutcome, frozen=True):
    """The first such answer counts: later hooks are not asked."""

    composition: ClassVar[tuple[Composition, ...]] = ("first wins",)


class LastWins(HookOutcome, frozen=True):
    """Every hook is asked, and the last such answer counts."""

    composition: ClassVar[tuple[Composition, ...]] = ("last override",)


class Collect(HookOutcome, frozen=True):
    """Every hook is asked, and all such answers become one, in order."""

    composition: ClassVar[tuple[Composition, ...]] = ("collect",)


class Chain(HookOutcome, Generic[In], frozen=True):
    """Later hooks see what such an answer changed."""

    composition: ClassVar[tuple[Composition, ...]] = ("chain",)

    def applied(self, value: In) -> In:
        """Return what later hooks see."""
        del value
        raise NotImplementedError
