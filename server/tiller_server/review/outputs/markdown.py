"""A review as Markdown: the summary first, then the findings, then what a reader must know to judge them. Pure."""

from collections.abc import Iterator

from agent_core.kernel.text import readable
from tiller_server.review.findings.result import SEVERITIES, Finding, Review
from tiller_server.review.outputs.markdown_escape import (
    fenced,
    harmless,
    harmless_line,
    inline_code,
)
from tiller_server.review.outputs.summary import facts, headline, left_out_lines, place

MOST_LEFT_OUT = 100


def render_markdown(review: Review) -> str:
    """Write a report that stands alone."""
    return "\n\n".join(_paragraphs(review)) + "\n"


def _paragraphs(review: Review) -> Iterator[str]:
    yield f"# Tiller review: {headline(review)}"
    if review.partial is not None:
        yield f"> **Partial review:** {harmless_line(review.partial)}"
    yield harmless(review.summary)
    for severity in SEVERITIES:
        some = [one for one in review.findings if one.severity == severity]
        if some:
            yield f"## {severity.capitalize()}s"
        for finding in some:
            yield from _finding(finding)
    yield "## About this review"
    yield "\n".join(f"- {name}: {value}" for name, value in facts(review))
    if lines := [f"- {harmless_line(line)}" for line in left_out_lines(review, most=MOST_LEFT_OUT)]:
        yield "### Not shown, and not looked at"
        yield "\n".join(lines)


def _finding(finding: Finding) -> Iterator[str]:
    sure = round(finding.confidence * 100)
    yield f"### {harmless_line(finding.title)}"
    yield f"{inline_code(readable(place(finding)))} · {finding.category} · {sure} % sure"
    yield fenced(finding.evidence)
    if finding.message:
        yield harmless(finding.message)
    suggestion = finding.suggestion
    if suggestion is None:
        return
    lines = f"{suggestion.line}" + (
        f"-{suggestion.end_line}" if suggestion.end_line > suggestion.line else ""
    )
    if not suggestion.replacement:
        yield f"Suggested: delete lines {lines}."
        return
    yield f"Suggested in the place of line {lines}:"
    yield fenced(suggestion.replacement)
