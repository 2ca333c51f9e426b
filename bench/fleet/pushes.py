"""Pushes of a day: bursts of pushes to changes of repositories, most of them in working hours."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tiller_server.fleet.values import ChangeName

HOUR_MS: Final = 60 * 60 * 1000
PEAK_HOUR: Final = 10
HOURS: Final = {8: 2.0, 9: 3.0, PEAK_HOUR: 6.0, 11: 3.0, 12: 2.0}
"""Changes begun in an hour, as a multiple of the mean; the other hours share what is left."""
PUSHES_OF_A_CHANGE: Final = 3
"""Mean of the count of pushes to a change in a day."""
GAP_MEDIAN_MS: Final = 10 * 60 * 1000
GAP_SIGMA: Final = 1.2
"""Pauses between the pushes to a change are log-normal."""
ORG_REPOSITORIES: Final = 100
"""Repositories of an organisation."""
ACTIVITY_SIGMA: Final = 1.0
"""How much repositories differ: their shares of the pushes are log-normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A push to a change."""

    at_ms: int
    change: ChangeName
    head: str


def pushes_of_a_day(repositories: int, *, per_repository: float, seed: int) -> list[Push]:
    """Return the pushes of a day in their order."""
    chance = random.Random(seed)  # noqa: S311 - the same day each time
    names = [f"org{number // ORG_REPOSITORIES}/repo{number}" for number in range(repositories)]
    shares = list(accumulate(chance.lognormvariate(0, ACTIVITY_SIGMA) for _ in names))
    rest = (24 - sum(HOURS.values())) / (24 - len(HOURS))
    hours = list(accumulate(HOURS.get(hour, rest) for hour in range(24)))
    changes = round(repositories * per_repository / PUSHES_OF_A_CHANGE)
    made: list[Push] = []
    for number in range(1, changes + 1):
        (repo,) = chance.choices(names, cum_weights=shares)
        (hour,) = chance.choices(range(24), cum_weights=hours)
        change = ChangeName(forge="forge", repo=repo, number=number)
        made += _pushes_of(change, chance, from_ms=round((hour + chance.random()) * HOUR_MS))
    return sorted(made, key=lambda push: push.at_ms)


def _pushes_of(change: ChangeName, chance: random.Random, *, from_ms: int) -> Iterator[Push]:
    at_ms = from_ms
    while True:
        yield Push(at_ms=at_ms, change=change, head=f"{chance.getrandbits(160):040x}")
        if chance.random() < 1 / PUSHES_OF_A_CHANGE:
            return
        at_ms += round(GAP_MEDIAN_MS * chance.lognormvariate(0, GAP_SIGMA))
