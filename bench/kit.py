"""What a benchmark is, and what it gives: rows of samples, each with a floor or peer of the same run."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeVar

from bench.lab import Workshop

T = TypeVar("T")

Statistic = Literal["median", "p95", "ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    name: str
    starts: int
    """Starts of a server; also the number of first prompts."""
    rounds: int
    """Repetitions of everything that runs in a warm server."""
    prompts: int
    """Prompts a round whose acknowledgement is timed."""
    deltas: tuple[int, ...] = (2_000, 5_000, 10_000, 20_000)
    paced: int = 1_000
    """Deltas of the answer that comes at the pace of a fast model."""
    calls: int = 50
    history: int = 2_000


FULL = Plan(name="full", starts=9, rounds=5, prompts=50)
QUICK = Plan(name="quick", starts=3, rounds=1, prompts=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What stands beside our figure: the least that the same work can cost, or another program's cost."""

    name: str
    samples: tuple[float, ...]
    why_none: str = ""
    """Why there are no samples: the program cannot do this, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What the figure should not pass."""

    of: Statistic
    at_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure."""

    what: str
    unit: str
    ours: tuple[float, ...]
    peer: Peer | None = None
    """What the ratio is to."""
    others: tuple[Peer, ...] = ()
    """Further figures, beside which ours is only shown."""
    bar: Bar | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our median over the peer's; None without a peer, or with one that costs nothing or has no figure."""
        if self.peer is None or not self.peer.samples or not self.ours:
            return None
        floor = median(self.peer.samples)
        return median(self.ours) / floor if floor > 0 else None

    def statistic(self, which: Statistic) -> float | None:
        """Give what a bar is about."""
        match which:
            case "median":
                return median(self.ours) if self.ours else None
            case "p95":
                return percentile(self.ours, 95) if self.ours else None
            case "ratio":
                return self.ratio

    @property
    def is_held(self) -> bool | None:
        """Whether the bar is held; None without one."""
        if self.bar is None or (measured := self.statistic(self.bar.of)) is None:
            return None
        return measured <= self.bar.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One benchmark; its file gives it as `BENCHMARK`."""

    name: str
    title: str
    run: Callable[[Plan, Workshop], Awaitable[list[Row]]]
    with_peers: bool = False
    """Whether it measures other agents, and so runs only when some are named."""


def percentile(samples: Sequence[float], percent: float) -> float:
    """Give the smallest sample that at least so many percent do not pass (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


async def alternate(
    rounds: int, first: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[T]]
) -> tuple[list[T], list[T]]:
    """Run both in turn, AB BA AB …, so that a machine that slows down slows both."""
    ours, theirs = await alternate_all(rounds, [first, second])
    return ours, theirs


async def alternate_all(rounds: int, ways: Sequence[Callable[[], Awaitable[T]]]) -> list[list[T]]:
    """Run all in turn, ABC CBA ABC …; returns what each returned."""
    returned: list[list[T]] = [[] for _ in ways]
    for number in range(rounds):
        order = range(len(ways))
        for place in order if number % 2 == 0 else reversed(order):
            returned[place].append(await ways[place]())
    return returned
