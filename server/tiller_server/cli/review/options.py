"""Turns the options of `tiller review` into what is asked of the review."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio

from agent_core.events import Budgets
from tiller_server.cli.review.files import content_of
from tiller_server.review.findings.baseline import read_baseline
from tiller_server.review.findings.result import Review
from tiller_server.review.git.file_filter import ReviewFileFilter
from tiller_server.review.git.revisions import WORKING_TREE
from tiller_server.review.options import ReviewOrder
from tiller_server.review.outputs.json_report import read_json

CI_CEILING_USD: Final = 2.0
CI_MINUTES: Final = 30.0
NO_BASELINE: Final = "none"


async def order_of(options: argparse.Namespace, variables: Mapping[str, str]) -> ReviewOrder:
    """Read what the options name, and give what is asked.

    Raises:
        ReviewFileInvalid: A baseline or an earlier report cannot be used.
    """
    in_ci = is_ci(variables)
    minutes = options.max_minutes
    return ReviewOrder(
        base=options.base,
        head=WORKING_TREE if options.uncommitted else options.head,
        scope=ReviewFileFilter(paths=tuple(options.path), excluded=tuple(options.exclude)),
        wishes=options.instructions.strip(),
        most_findings=options.max_findings,
        least_confidence=options.min_confidence,
        budgets=Budgets(
            usd=options.budget_usd,
            tokens=options.max_tokens,
            turns=options.max_turns,
            minutes=CI_MINUTES if minutes is None and in_ci else minutes,
        ),
        ceiling_usd=CI_CEILING_USD if in_ci else None,
        accepted=await read_accepted(options.baseline),
        earlier=await _earlier(options.previous),
    )


def is_ci(variables: Mapping[str, str]) -> bool:
    """Return whether a service runs this, where nobody watches what it costs."""
    return variables.get("CI", "").lower() in {"true", "1"}


async def read_accepted(named: str | None) -> frozenset[str] | None:
    """Read the fingerprints that the file of `--baseline` accepts; None: no file is named.

    Raises:
        ReviewFileInvalid: It cannot be used.
    """
    if named is None:
        return None
    if named == NO_BASELINE:
        return frozenset()
    return read_baseline(await content_of(Path(named)), name=named)


async def _earlier(path: Path | None) -> Review | None:
    # In CI it comes from a cache, which may be empty.
    if path is None or not await anyio.Path(path).exists():
        return None
    return read_json(await content_of(path), name=str(path))
