"""A review as workflow commands, which a job prints so that GitHub shows findings beside the lines of a change."""

from collections.abc import Iterator, Mapping
from typing import Final

from agent_core.kernel.text import one_line, readable
from tiller_server.review.findings.result import Finding, Review, Severity
from tiller_server.review.outputs.summary import SHA_CHARS, counted

COMMANDS: Final[Mapping[Severity, str]] = {
    "error": "error",
    "warning": "warning",
    "note": "notice",
}


def render_annotations(review: Review) -> str:
    """Write one workflow command for each finding, the gravest first; a runner shows ten of each kind.

    Every line begins with a command of ours, and no text can begin another: its line breaks are escaped.
    """
    return "".join(f"{line}\n" for line in _lines(review))


def _lines(review: Review) -> Iterator[str]:
    if review.partial is not None:
        yield _command("warning", {"title": "The review is partial"}, review.partial)
    for finding in review.findings:
        yield _command(COMMANDS[finding.severity], _place(finding), finding.message)
    if not review.findings:
        where = f"{counted(len(review.files), 'file')} of {review.header.head.sha[:SHA_CHARS]}"
        yield _command("notice", {"title": "Tiller review"}, f"Nothing found in {where}.")


def _place(finding: Finding) -> Mapping[str, str]:
    return {
        "file": readable(finding.path),
        "line": str(finding.line),
        "endLine": str(finding.end_line),
        "title": f"{one_line(finding.title)} ({finding.category})",
    }


def _command(name: str, properties: Mapping[str, str], text: str) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_text(text)}"


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
