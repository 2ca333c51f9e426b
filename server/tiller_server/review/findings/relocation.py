"""Moves a finding to where its evidence stands now: pure."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tiller_server.review.findings.quote_location import QuoteLocation, find_quote
from tiller_server.review.findings.result import Finding

MARK: Final = re.compile(r"\[redacted:[^\]\n]*\]")
"""Placeholder of a redacted secret."""


def moved(finding: Finding, lines: Sequence[str]) -> Finding | None:
    """Return a finding with the lines of today; None when its evidence is gone. Its evidence is all of its lines.

    Args:
        finding: Of another time.
        lines: The file as it is now.
    """
    place = find_quote(lines, finding.evidence, near=finding.line)
    if place is None and MARK.search(finding.evidence):
        place = _around_marks(finding, lines)
    if place is None:
        return None
    suggestion = finding.suggestion
    shift = place.line - finding.line
    if suggestion is not None and shift:
        suggestion = replace(
            suggestion, line=suggestion.line + shift, end_line=suggestion.end_line + shift
        )
    return replace(finding, line=place.line, end_line=place.end_line, suggestion=suggestion)


def _around_marks(finding: Finding, lines: Sequence[str]) -> QuoteLocation | None:
    """Find evidence that held a secret; a placeholder in it matches any text."""
    wanted = [_pattern(quoted) for quoted in finding.evidence.split("\n")]
    nearest = sorted(
        range(len(lines) - len(wanted) + 1), key=lambda start: abs(start + 1 - finding.line)
    )
    for start in nearest:
        there = lines[start : start + len(wanted)]
        if all(one.fullmatch(line.strip()) for one, line in zip(wanted, there, strict=True)):
            return QuoteLocation(line=start + 1, end_line=start + len(wanted))
    return None


def _pattern(quoted: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, MARK.split(quoted.strip()))))
