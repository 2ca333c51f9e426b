"""Makes one list of what was found: duplicates merged, names made unique, the gravest first. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from server.review.findings import SEVERITIES, Dropped, Finding
from server.review.fingerprints import numbered


def merged(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Keep of findings about the same lines the gravest, then the surest.

    Two are about the same when they are of one category and their lines overlap, or when they begin at one line and
    have one title.
    """
    kept: list[Finding] = []
    dropped: list[Dropped] = []
    for finding in sorted(findings, key=_order):
        twin = next((other for other in kept if _same(finding, other)), None)
        if twin is None:
            kept.append(finding)
        elif finding != twin:
            dropped.append(left(finding, f"the same as {twin.title!r} at line {twin.line}"))
    return unique(kept), tuple(dropped)


def limited(
    findings: Sequence[Finding], *, most: int
) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Keep the first so many."""
    over = tuple(left(finding, f"over the limit of {most} findings") for finding in findings[most:])
    return tuple(findings[:most]), over


def left(finding: Finding, reason: str) -> Dropped:
    """Say that a finding is not shown."""
    return Dropped(path=finding.path, line=finding.line, title=finding.title, reason=reason)


def unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Tell apart findings whose fingerprints are the same, in the order of their places."""
    seen: dict[str, int] = {}
    named: dict[int, str] = {}
    places = sorted(range(len(findings)), key=lambda one: (findings[one].path, findings[one].line))
    for place in places:
        name = findings[place].fingerprint
        count = seen.get(name, 0)
        seen[name] = count + 1
        named[place] = numbered(name, count)
    return tuple(
        finding
        if named[place] == finding.fingerprint
        else replace(finding, fingerprint=named[place])
        for place, finding in enumerate(findings)
    )


def _order(finding: Finding) -> tuple[int, float, str, int]:
    return SEVERITIES.index(finding.severity), -finding.confidence, finding.path, finding.line


def _same(one: Finding, other: Finding) -> bool:
    if one.path != other.path:
        return False
    if one.category == other.category:
        return one.line <= other.end_line and other.line <= one.end_line
    return one.line == other.line and one.title.casefold() == other.title.casefold()
