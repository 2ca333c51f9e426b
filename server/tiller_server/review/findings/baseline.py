"""The file of findings that a project has accepted."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings.deduplication import unique
from tiller_server.review.findings.fingerprints import fingerprint, former_fingerprint
from tiller_server.review.findings.result import Category, Finding

NONE: Final = frozenset[str]()
ABOUT: Final = "Findings of tiller review that are accepted: they are not shown again while their lines stay as they are."


class FingerprintFunction(Protocol):
    """A way to name findings."""

    def __call__(self, lines: Sequence[str], /, *, line: int, category: Category) -> str:
        """Return the name of a finding at a line."""
        ...


class AcceptedFinding(BaseModel):
    """One accepted finding; only the fingerprint counts, the rest is for people."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fingerprint: str = Field(pattern="^[0-9a-f]{32}$")
    path: str = ""
    title: str = ""
    why: str = ""


class BaselineFile(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    about: str = ABOUT
    version: int = Field(default=1, ge=1, le=1)
    accepted: tuple[AcceptedFinding, ...] = ()


def read_baseline(content: bytes, *, name: str) -> frozenset[str]:
    """Return the fingerprints that a file accepts.

    Raises:
        ReviewFileInvalid: It is no such file; the text says where.
    """
    try:
        file = BaselineFile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        message = f"the baseline {name} cannot be used: {place or 'the file'}: {first['msg']}; write it anew with --write-baseline"
        raise ReviewFileInvalid(message) from error
    return frozenset(one.fingerprint for one in file.accepted)


def not_accepted(
    findings: Sequence[Finding], accepted: frozenset[str], *, texts: Mapping[str, Sequence[str]]
) -> tuple[Finding, ...]:
    """Leave out the findings that are accepted, under any of the names that they have or had.

    A finding of an earlier review brings the name that it had then along, and files of before hold names that were made
    in another way.

    Args:
        findings: All of a review, in one piece: findings of one name are told apart among them.
        accepted: The names that the file holds.
        texts: By path the lines of their files.
    """
    if not accepted:
        return tuple(findings)
    now = _named(findings, texts, fingerprint)
    before = _named(findings, texts, former_fingerprint)
    return tuple(
        one
        for one, *names in zip(findings, now, before, strict=True)
        if accepted.isdisjoint({one.fingerprint, *names})
    )


def _named(
    findings: Sequence[Finding], texts: Mapping[str, Sequence[str]], name: FingerprintFunction
) -> list[str]:
    renamed = (
        replace(one, fingerprint=name(texts[one.path], line=one.line, category=one.category))
        if one.path in texts
        else one
        for one in findings
    )
    return [one.fingerprint for one in unique(tuple(renamed))]


def written_baseline(findings: Sequence[Finding], *, kept: frozenset[str] = NONE) -> str:
    """Write a file that accepts findings, and the fingerprints that were accepted before."""
    there = {one.fingerprint for one in findings}
    old = [AcceptedFinding(fingerprint=each) for each in sorted(kept - there)]
    new = [
        AcceptedFinding(fingerprint=one.fingerprint, path=one.path, title=one.title)
        for one in sorted(findings, key=lambda one: (one.path, one.line))
    ]
    whole = BaselineFile(accepted=tuple(new + old)).model_dump(exclude_defaults=False)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
