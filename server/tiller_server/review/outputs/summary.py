"""Text that every output format of a review shares: counts, the header, what was left out. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from agent_core.kernel.clock import parse_rfc3339
from agent_core.kernel.text import readable
from tiller_server.review.findings.result import SEVERITIES, Finding, Review

SHA_CHARS: Final = 12
IN_MINUTES_S: Final = 120
MANY: Final = 5
"""So many files left out for one reason are named; of more there is only the number."""


def counts(findings: Sequence[Finding]) -> str:
    """Return how many there are of each severity."""
    if not findings:
        return "nothing found"
    numbers = [(name, sum(one.severity == name for one in findings)) for name in SEVERITIES]
    return ", ".join(
        f"{number} {name}{'' if number == 1 else 's'}" for name, number in numbers if number
    )


def headline(review: Review) -> str:
    """Return what a report is headed by: a review that ended early found nothing only so far."""
    if review.partial is None:
        return counts(review.findings)
    return f"not finished, {counts(review.findings)} so far"


def place(finding: Finding) -> str:
    """Name the lines of a finding."""
    end = f"-{finding.end_line}" if finding.end_line > finding.line else ""
    return f"{finding.path}:{finding.line}{end}"


def facts(review: Review) -> Iterator[tuple[str, str]]:
    """Return the header as names and values."""
    header = review.header
    yield "Tiller", f"{header.version}, model {header.model}, prompt {header.prompt_hash}"
    yield "Base", f"{header.base.ref} ({header.base.sha[:SHA_CHARS]})"
    yield "Head", f"{header.head.ref} ({header.head.sha[:SHA_CHARS]})"
    if header.merge_base != header.base.sha:
        yield "They part at", header.merge_base[:SHA_CHARS]
    if header.since is not None:
        yield "Since", f"{header.since[:SHA_CHARS]}; what was there before was not read again"
    lines = sum(file.additions + file.deletions for file in review.files)
    yield "Looked at", f"{counted(len(review.files), 'file')}, {counted(lines, 'changed line')}"
    cost = "cost unknown" if header.cost_usd is None else f"${header.cost_usd:.4f}"
    yield (
        "Cost",
        f"{cost}, {header.tokens:,} tokens, {counted(header.turns, 'turn')}, {took(review)}",
    )
    if review.accepted:
        yield "Accepted", f"{counted(review.accepted, 'finding')} of the baseline, not shown"
    if review.suppressed:
        yield "Suppressed", f"{counted(review.suppressed, 'finding')} rejected before, not shown"
    if review.fixed:
        yield "Fixed", f"{counted(len(review.fixed), 'finding')} of the earlier review"
    if header.session is not None:
        yield "Session", header.session


def took(review: Review) -> str:
    """Return how long it took."""
    begun, ended = review.header.started_at, review.header.ended_at
    seconds = max(0, parse_rfc3339(ended) - parse_rfc3339(begun)) / 1000
    return f"{seconds:.0f} s" if seconds < IN_MINUTES_S else f"{seconds / 60:.1f} min"


def left_out_lines(review: Review, *, most: int) -> tuple[str, ...]:
    """Return what was dropped and what was not looked at, a line each."""
    lines = [*_dropped(review), *_unread(review)]
    more = len(lines) - most
    return tuple(lines) if more <= 0 else (*lines[:most], f"and {more} more")


def counted(number: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _dropped(review: Review) -> Iterator[str]:
    for one in review.dropped:
        where = one.path if one.line is None else f"{one.path}:{one.line}"
        yield f"{readable(where)}: {one.title}: {one.reason}"


def _unread(review: Review) -> Iterator[str]:
    ordered = sorted(review.left_out, key=lambda one: (one.reason, one.path))
    for reason, group in groupby(ordered, key=lambda one: one.reason):
        paths = [readable(one.path) for one in group]
        if len(paths) > MANY:
            yield f"{counted(len(paths), 'file')} not looked at, {reason}: {', '.join(paths[:MANY])} …"
        else:
            yield f"{', '.join(paths)}: not looked at, {reason}"
