"""A hook at every point, which notes what it is asked and has nothing to say, unless told otherwise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent_core.hooks import POINTS, GoOn, Hook, HookInput, HookOutcome, HookTable

One = TypeVar("One", bound=HookInput[Any])


@dataclass
class Listener:
    """What was asked at all points, in order."""

    heard: list[HookInput[Any]] = field(default_factory=list)
    says: dict[type[HookInput[Any]], HookOutcome | Callable[[Any], HookOutcome]] = field(
        default_factory=dict
    )
    """What it answers, or makes of what it is given, by the class of that."""
    table: HookTable = field(default_factory=HookTable)

    def __post_init__(self) -> None:
        for point in POINTS:
            self.table.add(Hook("listener", self._hear), at=point)

    async def _hear(self, value: HookInput[Any], _: object) -> HookOutcome:
        self.heard.append(value)
        answer = self.says.get(type(value), GoOn())
        return answer(value) if callable(answer) else answer

    def names(self) -> list[str]:
        """Give the names of all that was asked."""
        return [POINTS[type(one)].name for one in self.heard]

    def of(self, kind: type[One]) -> list[One]:
        """Give what was asked at one point."""
        return [one for one in self.heard if isinstance(one, kind)]

    def one(self, kind: type[One]) -> One:
        """Give what was asked at one point, exactly once."""
        (only,) = self.of(kind)
        return only
