"""Checks what a model reports against the files it speaks of: pure."""

from collections.abc import Sequence

from agent_core.kernel.values import Value
from tiller_server.review.findings.fingerprints import fingerprint
from tiller_server.review.findings.quote_location import QuoteLocation, find_quote, quoted_lines
from tiller_server.review.findings.raw_finding import RawFinding
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.findings.sanitizer import (
    EVIDENCE_CHARS,
    evidence_of,
    markdown_of,
    title_of,
)
from tiller_server.review.findings.suggestions import SuggestionInvalid, checked_suggestion
from tiller_server.review.git.diff import GitDiffHunk

WIDEST_LINES = 200


class FindingRejected(Exception):
    """A finding that cannot be shown; the text is for the model, `why` alone for people too."""

    def __init__(self, why: str, *, advice: str = "") -> None:
        """Create the error from its reason and the advice for the model."""
        super().__init__(f"{why}; {advice}" if advice else why)
        self.why = why


class NewSide(Value, frozen=True, kw_only=True):
    """A file of the head."""

    path: str
    lines: tuple[str, ...]
    hunks: tuple[GitDiffHunk, ...] = ()
    """Hunks of the file in the diff."""
    is_text: bool = True
    """Whether all of it is UTF-8."""


class VerifiedFinding(Value, frozen=True, kw_only=True):
    """A finding that stands, and what had to be put right about it."""

    finding: Finding
    notes: tuple[str, ...] = ()
    """Sentences for the model."""


def lines_of(content: bytes) -> tuple[str, ...]:
    """Return the lines of a file, without their ends."""
    text = content.decode("utf-8", "replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        del lines[-1]
    return tuple(lines)


def is_utf8(content: bytes) -> bool:
    """Return whether a file is text in the usual encoding."""
    try:
        _ = content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def check(raw: RawFinding, there: NewSide) -> VerifiedFinding:
    """Check a finding, and move it to the lines of its evidence.

    Raises:
        NotSo: Its evidence is not found nearby, or there is none.
    """
    notes: list[str] = []
    said = _said_place(raw, there)
    found = _found(raw, there, said)
    place = _place(raw, there, said=said, found=found)
    if place != said:
        notes.append(f"moved to lines {place.line}-{place.end_line}, where the evidence stands")
    suggestion = None
    if raw.suggestion is not None:
        suggestion = _suggestion(raw, there, said=said, place=place, notes=notes)
    shown = _trimmed(there.lines, place)
    finding = Finding(
        path=there.path,
        line=shown.line,
        end_line=shown.end_line,
        severity=raw.severity,
        category=raw.category,
        title=title_of(raw.title) or "Untitled",
        message=markdown_of(raw.message),
        evidence=evidence_of("\n".join(there.lines[shown.line - 1 : shown.end_line])),
        suggestion=suggestion,
        confidence=min(1.0, max(0.0, raw.confidence)),
        fingerprint=fingerprint(there.lines, line=shown.line, category=raw.category),
        in_diff=in_one_hunk(there.hunks, shown),
    )
    return VerifiedFinding(finding=finding, notes=tuple(notes))


def in_one_hunk(hunks: Sequence[GitDiffHunk], place: QuoteLocation) -> bool:
    """Return whether the diff shows all lines of a place in one stretch."""
    return any(hunk.shows(place.line) and hunk.shows(place.end_line) for hunk in hunks)


def _said_place(raw: RawFinding, there: NewSide) -> QuoteLocation:
    last = len(there.lines)
    line = min(max(raw.line, 1), max(last, 1))
    end_line = min(max(raw.end_line, line), max(last, 1))
    return QuoteLocation(line=line, end_line=min(end_line, line + WIDEST_LINES - 1))


def _place(
    raw: RawFinding, there: NewSide, *, said: QuoteLocation, found: QuoteLocation
) -> QuoteLocation:
    """Return the lines that were said, when the evidence is among them; else those of the evidence."""
    within = said.line <= found.line and found.end_line <= said.end_line
    if not within or not 1 <= raw.line <= raw.end_line <= len(there.lines):
        return found
    # Whoever keeps the finding finds it again by all of its lines.
    text = there.lines[said.line - 1 : said.end_line]
    return said if sum(map(len, text)) + len(text) <= EVIDENCE_CHARS else found


def _trimmed(lines: Sequence[str], place: QuoteLocation) -> QuoteLocation:
    """Leave out blank lines at the ends."""
    numbers = [n for n in range(place.line, place.end_line + 1) if lines[n - 1].strip()]
    return QuoteLocation(line=numbers[0], end_line=numbers[-1])


def _found(raw: RawFinding, there: NewSide, said: QuoteLocation) -> QuoteLocation:
    if not there.lines:
        message = f"{there.path} is empty"
        raise FindingRejected(message)
    if not quoted_lines(raw.evidence):
        advice = "quote the lines that are wrong, just as they stand in the file"
        raise FindingRejected("there is no evidence", advice=advice)
    found = find_quote(there.lines, raw.evidence, near=said.line)
    if found is None:
        message = (
            f"the evidence does not stand in {there.path} at or near line {raw.line} (the file has "
            f"{len(there.lines)} lines)"
        )
        raise FindingRejected(
            message, advice="read the file and quote the lines just as they stand there"
        )
    return found


def _suggestion(
    raw: RawFinding, there: NewSide, *, said: QuoteLocation, place: QuoteLocation, notes: list[str]
) -> Suggestion | None:
    if not there.is_text:
        notes.append("the suggestion was left out: the file is not all UTF-8")
        return None
    same_length = said.end_line - said.line == place.end_line - place.line
    if not same_length or (raw.line, raw.end_line) != (said.line, said.end_line):
        notes.append("the suggestion was left out: it was made for other lines than the evidence's")
        return None
    try:
        return checked_suggestion(raw.suggestion or "", there.lines, place, path=there.path)
    except SuggestionInvalid as why:
        notes.append(f"the suggestion was left out: {why}")
        return None
