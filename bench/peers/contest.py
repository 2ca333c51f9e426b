"""The programs of one run, measured in turn, and the row that their figures make."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from bench.kit import Bar, Peer, Row, alternate_all
from bench.lab import Lab, Workshop
from bench.peers.agent import Ability, Agent, AgentFailedError, Program, Turn, turn
from bench.peers.codex import Codex
from bench.peers.floor import Floor
from bench.peers.pi import Pi
from bench.peers.tiller import Tiller

PEERS: Mapping[str, Callable[[], Program]] = {"pi": Pi, "codex": Codex}
OURS = "tiller"
Way = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Figures:
    """The samples of one program, or why there are none."""

    samples: tuple[float, ...] = ()
    why_none: str = ""


def programs(shop: Workshop) -> list[Program]:
    """Return the floor, the peers of this run, and ours."""
    return [Floor(), *(PEERS[name]() for name in shop.peers), Tiller()]


@asynccontextmanager
async def started(lab: Lab, contestants: Sequence[Program]) -> AsyncGenerator[Mapping[str, Agent]]:
    """Start them all; those that are idle do not disturb the one that works."""
    async with AsyncExitStack() as stack:
        yield {one.name: await stack.enter_async_context(one.start(lab)) for one in contestants}


def able(contestants: Sequence[Program], ability: Ability) -> list[Program]:
    """Return those that can do something."""
    return [one for one in contestants if ability not in one.cannot]


def unable(contestants: Sequence[Program], ability: Ability) -> dict[str, Figures]:
    """Return why the others cannot."""
    return {
        one.name: Figures(why_none=one.cannot[ability])
        for one in contestants
        if ability in one.cannot
    }


async def in_turns(rounds: int, ways: Mapping[str, Way]) -> dict[str, Figures]:
    """Measure all in turn. A peer that fails is not tried again; a failure of ours ends the measurement."""
    failures: dict[str, str] = {}

    def careful(name: str, way: Way) -> Callable[[], Awaitable[float | None]]:
        async def once() -> float | None:
            if name in failures:
                return None
            try:
                return await way()
            except (AgentFailedError, ConnectionError) as error:
                if name.startswith(OURS):
                    raise
                failures[name] = str(error)
                return None

        return once

    returned = await alternate_all(rounds, [careful(name, way) for name, way in ways.items()])
    return {
        name: Figures(why_none=failures[name])
        if name in failures
        else Figures(tuple(one for one in samples if one is not None))
        for name, samples in zip(ways, returned, strict=True)
    }


def row(
    what: str,
    unit: str,
    figures: Mapping[str, Figures],
    *,
    against: str = "floor",
    at_most: float | None = None,
    note: str = "",
) -> Row:
    """Return the row of all figures. The ratio is to the median of `against`, and the bar allows at most `at_most`."""
    peers = {
        name: Peer(name=name, samples=one.samples, why_none=one.why_none)
        for name, one in figures.items()
        if name != OURS
    }
    return Row(
        what=what,
        unit=unit,
        ours=figures[OURS].samples,
        peer=peers.pop(against, None),
        others=tuple(peers.values()),
        bar=None if at_most is None else Bar(of="ratio", at_most=at_most),
        note=note,
    )


def bounded(measured: Row, at_most: float) -> Row:
    """Return a row whose bar is a figure of its own unit."""
    return replace(measured, bar=Bar(of="median", at_most=at_most))


class Requests:
    """The model requests that arrive at the provider of a lab."""

    def __init__(self, lab: Lab) -> None:
        self._provider = lab.provider
        self._seen = len(lab.provider.log(bodies="without"))

    def new(self) -> list[dict[str, Any]]:
        """Return the requests since the last call."""
        log = self._provider.log(since=self._seen, bodies="without")
        self._seen += len(log)
        return [entry for entry in log if entry["method"] == "POST"]


async def requested_ms(agent: Agent, requests: Requests) -> float:
    """Prompt, and return the milliseconds until the head of the request was at the provider."""
    requests.new()
    taken: Turn = await turn(agent)
    arrived = requests.new()
    if not arrived:
        raise AgentFailedError("no request to the model")
    # The provider's monotonic clock is ours: it belongs to the machine.
    return (float(arrived[0]["head_at"]) - taken.sent) * 1000
