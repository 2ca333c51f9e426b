"""Makes one list of what was found: duplicates merged, names made unique, the gravest first. Pure."""

from collections.abc import Collection, Sequence
from itertools import count

from msgspec.structs import replace

from tiller_server.review.findings.fingerprints import numbered
from tiller_server.review.findings.result import SEVERITIES, Dropped, Finding


def merged(
    findings: Sequence[Finding], *, carried: Sequence[Finding] = ()
) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Merge duplicate findings: the gravest is kept, and of equally grave ones the most confident.

    Two findings are duplicates when they have the same category and their lines overlap, or when they begin at the same
    line and have the same title.

    Args:
        findings: Findings of this review.
        carried: Findings of an earlier review that still hold. Each keeps its fingerprint, also when this review has
            found it again and the new one is kept.
    """
    both = [*((one, False) for one in findings), *((one, True) for one in carried)]
    kept: list[Finding] = []
    named: set[int] = set()
    dropped: list[Dropped] = []
    for finding, is_carried in sorted(both, key=lambda pair: _order(pair[0])):
        place = next((at for at, other in enumerate(kept) if _same(finding, other)), len(kept))
        if place == len(kept):
            kept.append(finding)
        elif replace(finding, fingerprint=kept[place].fingerprint) != kept[place]:
            twin = kept[place]
            dropped.append(left(finding, f"the same as {twin.title!r} at line {twin.line}"))
        if is_carried and place not in named:
            named.add(place)
            kept[place] = replace(kept[place], fingerprint=finding.fingerprint)
    return unique(kept, named=named), tuple(dropped)


def limited(
    findings: Sequence[Finding], *, most: int
) -> tuple[tuple[Finding, ...], tuple[Dropped, ...]]:
    """Keep the first so many."""
    over = tuple(left(finding, f"over the limit of {most} findings") for finding in findings[most:])
    return tuple(findings[:most]), over


def left(finding: Finding, reason: str) -> Dropped:
    """Report that a finding is not shown."""
    return Dropped(path=finding.path, line=finding.line, title=finding.title, reason=reason)


def unique(findings: Sequence[Finding], *, named: Collection[int] = ()) -> tuple[Finding, ...]:
    """Return the findings with unique fingerprints; equal ones are numbered in the order of their places.

    Args:
        findings: All of a review.
        named: The indices of those that keep their names in any case.
    """
    names = {index: findings[index].fingerprint for index in named}
    taken = set(names.values())
    others = (index for index in range(len(findings)) if index not in names)
    for index in sorted(others, key=lambda one: (findings[one].path, findings[one].line)):
        candidates = (numbered(findings[index].fingerprint, ordinal) for ordinal in count())
        names[index] = next(name for name in candidates if name not in taken)
        taken.add(names[index])
    return tuple(
        finding
        if names[index] == finding.fingerprint
        else replace(finding, fingerprint=names[index])
        for index, finding in enumerate(findings)
    )


def _order(finding: Finding) -> tuple[int, float, str, int]:
    return SEVERITIES.index(finding.severity), -finding.confidence, finding.path, finding.line


def _same(one: Finding, other: Finding) -> bool:
    if one.path != other.path:
        return False
    if one.category == other.category:
        return one.line <= other.end_line and other.line <= one.end_line
    return one.line == other.line and one.title.casefold() == other.title.casefold()
