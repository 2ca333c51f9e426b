"""Sees words in a change that are meant to steer a program that reads it. Pure; no model is asked."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tiller_server.review.findings.raw_finding import RawFinding
from tiller_server.review.findings.verification import NewSide

_WHO: Final = r"(?:an?\s+)?(?:ai|llms?|language\s+models?|automated|bots?|agents?|assistants?|claude|gpt|copilot)\b"
STEERING: Final = re.compile(
    rf"""
    \b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){{0,2}}(?:previous|prior|above|earlier|preceding|your)\s+
        (?:\w+\s+){{0,2}}(?:instructions?|prompts?|rules|guidelines|directions)\b
    |\b(?:note|message|instructions?|attention)\s+(?:to|for)\s+(?:the\s+|any\s+|all\s+)?{_WHO}
    |\b{_WHO}\s*(?:code\s+)?(?:reviewers?|review)?\s*[:,]?\s*(?:must|should|please|do\s+not|don't|never)\s+
        (?:\w+\s+){{0,2}}(?:report|flag|mention|comment|approve|ignore|skip|review)\b
    |\b(?:do\s+not|don't|never)\s+(?:report|flag|mention)\s+(?:\w+\s+){{0,3}}
        (?:findings?|issues?|problems?|bugs?|vulnerabilit\w+)\b
    |\b(?:approve|accept)\s+(?:this|the)\s+(?:pull\s+request|pr|merge\s+request|mr|change|diff)\b
    |\breveal\s+(?:\w+\s+){{0,2}}(?:system\s+prompt|instructions|secrets?)\b
    |<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|</?(?:change|project_rules|system_prompt)>
    """,
    re.IGNORECASE | re.VERBOSE,
)
MOST_CHARS: Final = 2_000
MOST_FINDINGS: Final = 5
MESSAGE: Final = (
    "This line speaks to a program that reads the change. It was not obeyed. If it is an attempt to steer a review, "
    "look at the rest of the change with care; if it belongs there, as in a test or a guide, accept it in the baseline."
)


def injection_findings(files: Sequence[NewSide]) -> tuple[RawFinding, ...]:
    """Return a finding for each added line that tries to steer, the first ones of all."""
    found = (one for file in files for one in _in_file(file))
    return tuple(finding for finding, _ in zip(found, range(MOST_FINDINGS), strict=False))


def _in_file(file: NewSide) -> Iterator[RawFinding]:
    for hunk in file.hunks:
        number = hunk.new_line
        for line in hunk.lines:
            if line[:1] == "+" and STEERING.search(line[1 : MOST_CHARS + 1]):
                yield _finding(file.path, number, line[1:])
            number += line[:1] in {" ", "+"}


def _finding(path: str, line: int, text: str) -> RawFinding:
    return RawFinding(
        path=path,
        line=line,
        end_line=line,
        severity="warning",
        category="prompt-injection",
        title="Words that try to steer a reviewer",
        message=MESSAGE,
        evidence=text[:MOST_CHARS],
        confidence=0.6,
    )
