"""The hidden first line of every comment of ours, by which a later run knows it again."""

import json
import re
from collections.abc import Mapping
from typing import Final

from agent_core.kernel.json import JsonValue, decode
from agent_core.kernel.values import Value

FINDING: Final = re.compile(r"<!-- tiller:finding ([0-9a-f]{8,64})( fixed)? -->")
SUMMARY: Final = re.compile(r"<!-- tiller:summary (\{[^<>]{0,60000}\}) -->")
REMEMBERED: Final = 500
"""How many fingerprints a summary remembers; at 32 digits each they leave room for words."""


class FindingMark(Value, frozen=True, kw_only=True):
    """Mark of a comment: the finding, and whether it is fixed."""

    fingerprint: str
    is_fixed: bool


class SummaryMark(Value, frozen=True, kw_only=True):
    """Mark of the summary: state for the next run."""

    head: str = ""
    """The commit that was reviewed; empty when it cannot be read."""
    digest: str = ""
    """Over all that a reader would want to be told anew."""
    posted: tuple[str, ...] = ()
    """Fingerprints that have had a comment, so that one which somebody deleted does not come back."""


def write_finding_mark(fingerprint: str) -> str:
    """Return the first line of a comment on a finding that stands."""
    return f"<!-- tiller:finding {fingerprint} -->"


def write_fixed_mark(fingerprint: str) -> str:
    """Return the first line of a comment on a finding that is gone."""
    return f"<!-- tiller:finding {fingerprint} fixed -->"


def write_summary_mark(mark: SummaryMark) -> str:
    """Return the first line of a summary."""
    state = {
        "head": mark.head,
        "digest": mark.digest,
        "posted": list(mark.posted[-REMEMBERED:]),
    }
    return f"<!-- tiller:summary {json.dumps(state)} -->"


def read_finding_mark(body: str) -> FindingMark | None:
    """Read the first line of a comment; only there, so that no quoted text is taken for a mark."""
    found = FINDING.match(body)
    if found is None:
        return None
    return FindingMark(fingerprint=found[1], is_fixed=found[2] is not None)


def read_summary_mark(body: str) -> SummaryMark | None:
    """Read the first line of a summary; None without a mark. Damaged values count as missing."""
    found = SUMMARY.match(body)
    if found is None:
        return None
    try:
        state = decode(found[1])
    except ValueError:
        return SummaryMark()
    if not isinstance(state, Mapping):
        return SummaryMark()
    return SummaryMark(
        head=_text(state.get("head")),
        digest=_text(state.get("digest")),
        posted=_texts(state.get("posted")),
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in value if isinstance(item, str))
