"""Findings that a person rejected: they are not reported again while the file is not rewritten. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Category, Finding

SKETCH_LINES: Final = 16
HASH_CHARS: Final = 8
LEAST_SHARED: Final = 0.5
"""Share of its lines that a file still has when it is not rewritten, estimated from its sketch."""


class RejectedFinding(Value, frozen=True, kw_only=True):
    """A finding that a person rejected."""

    fingerprint: str
    path: str
    category: Category
    sketch: str = ""
    """Of the file at that time, as `sketch_of` returns it; empty: it is unknown."""


def not_rejected(
    findings: Sequence[Finding],
    rejected: Sequence[RejectedFinding],
    *,
    texts: Mapping[str, Sequence[str]],
) -> tuple[Finding, ...]:
    """Return the findings that were not rejected under the same fingerprint, path and category.

    Args:
        findings: All of a review.
        rejected: The rejected findings.
        texts: By path the lines of files; a file that was rewritten since has its findings reported again.
    """
    by_name = {(one.fingerprint, one.path, one.category): one for one in rejected}

    def is_rejected(finding: Finding) -> bool:
        one = by_name.get((finding.fingerprint, finding.path, finding.category))
        return one is not None and not is_rewritten(one.sketch, texts.get(finding.path))

    return tuple(finding for finding in findings if not is_rejected(finding))


def sketch_of(lines: Sequence[str]) -> str:
    """Return the smallest hashes of the lines of a file: two sketches share about as much as the files do."""
    return " ".join(_hashes(lines)[:SKETCH_LINES])


def is_rewritten(sketch: str, lines: Sequence[str] | None) -> bool:
    """Return whether a file shares less than half of its lines with the one that a sketch was made of."""
    before = sketch.split()
    if not before or lines is None:
        return False
    now = _hashes(lines)
    # The smallest hashes of both files together are a fair sample of all their lines.
    sample = sorted({*before, *now[:SKETCH_LINES]})[:SKETCH_LINES]
    shared = len({*sample} & {*before} & {*now})
    return shared < LEAST_SHARED * len(sample)


def _hashes(lines: Sequence[str]) -> list[str]:
    plain = {" ".join(line.split()) for line in lines}
    return sorted(
        hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:HASH_CHARS]
        for line in plain
        if line
    )
