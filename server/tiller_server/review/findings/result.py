"""Result of a review: checked findings, and the facts that a reader needs to judge them."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from agent_core.kernel.values import Value

Severity: TypeAlias = Literal["error", "warning", "note"]
Category: TypeAlias = Literal[
    "bug",
    "security",
    "concurrency",
    "performance",
    "compatibility",
    "tests",
    "documentation",
    "maintainability",
    "prompt-injection",
]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From the gravest to the mildest."""
CATEGORIES: Final[Mapping[Category, str]] = {
    "bug": "The code does something else than it should",
    "security": "Somebody could misuse the code",
    "concurrency": "Order or timing can break the code",
    "performance": "The code takes more time or memory than it needs to",
    "compatibility": "Callers, files or protocols that worked would break",
    "tests": "A test is wrong, or one that is needed is missing",
    "documentation": "What is written does not say what the code does",
    "maintainability": "The code is harder to read or to change than it needs to be",
    "prompt-injection": "The change holds words meant to steer a program that reads it",
}
"""Every category with one sentence about it, as for the rules of SARIF."""


class Suggestion(Value, frozen=True, kw_only=True):
    """Whole lines of the new side, and what should stand there instead."""

    line: int
    """The first line to replace, from 1."""
    end_line: int
    """The last line to replace, itself included."""
    replacement: str
    """Whole lines, each ended by a line feed; empty when the lines should go."""


class Finding(Value, frozen=True, kw_only=True):
    """Something wrong in what a change brings, with its place checked."""

    path: str
    """From the repository's root, with slashes, on the new side."""
    line: int
    """The first line, from 1, on the new side."""
    end_line: int
    """The last line, itself included."""
    severity: Severity
    category: Category
    title: str
    """One line."""
    message: str
    """Markdown."""
    evidence: str
    """The lines of the finding as they stand in the file; by them it is found again."""
    suggestion: Suggestion | None = None
    confidence: float
    """0.0 to 1.0."""
    fingerprint: str
    """32 hex digits; the same while the text at the place stays, wherever the lines or the file move."""
    in_diff: bool = True
    """Whether one stretch of the diff against the base shows all its lines; a host takes comments on no others."""


class Dropped(Value, frozen=True, kw_only=True):
    """A finding that was reported and is not shown, with the reason."""

    path: str
    line: int | None
    title: str
    reason: str
    """One sentence, for people."""


class ReviewedFile(Value, frozen=True, kw_only=True):
    """A file of the change that was looked at."""

    path: str
    old_path: str | None = None
    """Its name on the old side, when that was another."""
    additions: int = 0
    deletions: int = 0


class LeftOut(Value, frozen=True, kw_only=True):
    """A file of the change that was not looked at, with the reason."""

    path: str
    reason: str
    """A few words, as `generated` or `binary`."""


class Commit(Value, frozen=True, kw_only=True):
    """A commit, and how it was named."""

    ref: str
    """As it was asked for, as `origin/main`."""
    sha: str
    """40 or 64 hex digits."""


class ReviewHeader(Value, frozen=True, kw_only=True):
    """Which program looked at what, when, and what that cost."""

    version: str
    """Of Tiller."""
    model: str
    """`provider/id`."""
    prompt_hash: str
    """16 hex digits over instructions and project rules: reviews with the same ones can be compared."""
    base: Commit
    head: Commit
    merge_base: str
    """The commit that the head was compared with."""
    since: str | None = None
    """The commit that an earlier review ended at, when only what came after it was looked at."""
    started_at: str
    """ISO 8601, UTC."""
    ended_at: str
    turns: int = 0
    tokens: int = 0
    """Of all kinds."""
    cost_usd: float | None = None
    """None when the price of the model is not known."""
    session: str | None = None
    """The file of the session, when one was kept; in a report its id."""


class Review(Value, frozen=True, kw_only=True):
    """A review that has ended."""

    header: ReviewHeader
    summary: str
    """Markdown, a few sentences."""
    findings: tuple[Finding, ...] = ()
    """All that stand at the head, those of an earlier review included; the gravest first."""
    dropped: tuple[Dropped, ...] = ()
    accepted: int = 0
    """How many findings the baseline file has accepted; they are in no other field."""
    suppressed: int = 0
    """How many findings were not reported because a person rejected them before; they are in no other field."""
    fixed: tuple[str, ...] = ()
    """Fingerprints of an earlier review that are gone."""
    partial: str | None = None
    """Why not all was looked at, in one sentence; None when all was."""
    stopped: Literal["budget", "outage", "refused", "cancelled", "failed"] | None = None
    """Cause of the early end of a partial review; None also when files were only left unread."""
    files: tuple[ReviewedFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
