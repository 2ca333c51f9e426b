"""Moves a finding to where its evidence stands now: pure."""

from collections.abc import Sequence
from dataclasses import replace

from server.review.findings import Finding
from server.review.places import find_quote


def moved(finding: Finding, lines: Sequence[str]) -> Finding | None:
    """Give a finding with the lines of today; None when its evidence is gone. Its evidence is all of its lines.

    Args:
        finding: Of another time.
        lines: The file as it is now.
    """
    place = find_quote(lines, finding.evidence, near=finding.line)
    if place is None:
        return None
    suggestion = finding.suggestion
    shift = place.line - finding.line
    if suggestion is not None and shift:
        suggestion = replace(
            suggestion, line=suggestion.line + shift, end_line=suggestion.end_line + shift
        )
    return replace(finding, line=place.line, end_line=place.end_line, suggestion=suggestion)
