"""Chooses how long a test runs: small for every change, large for a campaign."""

import os
from collections.abc import Sequence
from itertools import product
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

CAMPAIGN_VARIABLE = "TILLER_CAMPAIGN"


def is_campaign() -> bool:
    """Say whether this run is at full size (`make campaign`)."""
    return os.environ.get(CAMPAIGN_VARIABLE) == "1"  # noqa: TID251 - the switch is the environment


def is_complete() -> bool:
    """Check whether this run must leave nothing out for want of a program: CI, or a campaign."""
    return is_campaign() or os.environ.get("CI") == "true"  # noqa: TID251 - the switch is the environment


def at_size(*, ci: int, campaign: int) -> int:
    """Return the count for this run; also usable in decorators."""
    return campaign if is_campaign() else ci


def paired(rows: Sequence[A], others: Sequence[B]) -> list[tuple[A, B]]:
    """Return every row with every one of the others, or at CI size with one of them in turn.

    For claims whose two sides do not depend on each other: each row and each of the others still has a test.
    """
    if is_campaign():
        return list(product(rows, others))
    turns = range(max(len(rows), len(others)))
    return [(rows[turn % len(rows)], others[turn % len(others)]) for turn in turns]
