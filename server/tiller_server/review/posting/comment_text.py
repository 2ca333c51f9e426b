"""The texts of the comments: Markdown that GitHub and GitLab both show well. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from agent_core.kernel.text import readable
from tiller_server.review.findings.result import Finding, Review, Severity, Suggestion
from tiller_server.review.outputs.markdown_escape import (
    fenced,
    harmless,
    harmless_cell,
    harmless_line,
    holds_commands,
    inline_code,
)
from tiller_server.review.outputs.summary import (
    SHA_CHARS,
    counted,
    facts,
    headline,
    left_out_lines,
    place,
)
from tiller_server.review.posting.code_host import CommentDraft
from tiller_server.review.posting.comment_markers import write_finding_mark, write_fixed_mark

SIGNS: Final[Mapping[Severity, str]] = {"error": "🔴", "warning": "🟠", "note": "🔵"}
CUT: Final = "\n\n*Cut here: the rest is in the report of the job.*"
MOST_LEFT_OUT: Final = 50


def draft(
    finding: Finding,
    review: Review,
    *,
    offer: Callable[[Suggestion], str | None],
    limit_chars: int,
) -> CommentDraft:
    """Return the comment on a finding; a suggestion is placed on its own lines, which are what it replaces.

    `offer` gives the word behind the fence by which the host knows a suggestion; None when it cannot take this one.
    """
    suggestion = finding.suggestion
    plain = cut(_comment(finding, review, _as_text(suggestion)), limit_chars=limit_chars)
    # What is offered is taken over as it is, so nothing in it can be escaped.
    is_inert = suggestion is not None and not holds_commands(suggestion.replacement)
    word = offer(suggestion) if suggestion is not None and is_inert else None
    body = ""
    if suggestion is not None and word is not None:
        block = fenced(suggestion.replacement, language=word)
        body = _comment(finding, review, f"\n\n{block}")
    if suggestion is None or word is None or len(body) > limit_chars:
        return CommentDraft(
            finding=finding,
            body=plain,
            plain_body=plain,
            line=finding.line,
            end_line=finding.end_line,
        )
    return CommentDraft(
        finding=finding,
        body=body,
        plain_body=plain,
        line=suggestion.line,
        end_line=suggestion.end_line,
    )


def fixed_comment(body: str, fingerprint: str, *, head: str) -> str:
    """Return a comment anew, for a finding that is gone."""
    _, _, rest = body.partition("\n")
    return (
        f"{write_fixed_mark(fingerprint)}\n✅ **Fixed** as of {inline_code(head[:SHA_CHARS])}\n\n"
        f"<details><summary>What it was</summary>\n\n{rest}\n\n</details>"
    )


def summary_text(review: Review, *, unplaced: Sequence[Finding], fixed: int) -> str:
    """Return the summary without its mark.

    Findings that are `unplaced` have no comment of their own and are told here in full; `fixed` counts the comments
    that were closed because their findings are gone.
    """
    return "\n\n".join(_paragraphs(review, unplaced, fixed))


def review_text(comments: int) -> str:
    """Return the text above comments that are posted together as one review."""
    return f"Tiller has {counted(comments, 'new comment')}; the summary lists all findings."


def cut(body: str, *, limit_chars: int) -> str:
    """Return a comment that the host takes."""
    if len(body) <= limit_chars:
        return body
    return body[: limit_chars - len(CUT)] + CUT


def _as_text(suggestion: Suggestion | None) -> str:
    if suggestion is None:
        return ""
    lines = _lines_of(suggestion.line, suggestion.end_line)
    if not suggestion.replacement:
        return f"\n\nSuggested: delete {lines}."
    return f"\n\nSuggested for {lines}:\n\n{fenced(suggestion.replacement)}"


def _comment(finding: Finding, review: Review, suggestion: str) -> str:
    return (
        f"{write_finding_mark(finding.fingerprint)}\n"
        f"{SIGNS[finding.severity]} **{harmless_line(finding.title)}**\n\n"
        f"{harmless(finding.message)}{suggestion}\n\n"
        f"<sub>{finding.severity} · {finding.category} · {round(100 * finding.confidence)} % sure · "
        f"Tiller {review.header.version}, {inline_code(review.header.model)}</sub>"
    )


def _paragraphs(review: Review, unplaced: Sequence[Finding], fixed: int) -> Iterator[str]:
    yield f"## Tiller review: {headline(review)}"
    if review.partial is not None:
        yield f"> ⚠️ **Partial review:** {harmless_line(review.partial)}"
    if review.summary.strip():
        yield harmless(review.summary)
    if review.findings:
        yield "\n".join(_table(review.findings))
    if fixed:
        yield f"✅ {counted(fixed, 'finding')} of an earlier review {'is' if fixed == 1 else 'are'} fixed."
    if unplaced:
        yield "**Without a comment of their own**, because their lines are not part of the change here:"
    for finding in unplaced:
        yield _in_full(finding)
    yield _about(review)


def _table(findings: Sequence[Finding]) -> Iterator[str]:
    yield "| | Finding | Where |\n| --- | --- | --- |"
    for finding in findings:
        where = inline_code(readable(place(finding))).replace("|", "\\|")
        title = harmless_cell(finding.title)
        yield f"| {SIGNS[finding.severity]} {finding.severity} | {title} | {where} |"


def _in_full(finding: Finding) -> str:
    return (
        f"### {SIGNS[finding.severity]} {harmless_line(finding.title)}\n\n"
        f"{inline_code(readable(place(finding)))}\n\n{harmless(finding.message)}"
        f"{_as_text(finding.suggestion)}"
    )


def _about(review: Review) -> str:
    table = "\n".join(f"| {name} | {harmless_cell(value)} |" for name, value in _shared(review))
    lines = "".join(
        f"\n- {harmless_line(line)}" for line in left_out_lines(review, most=MOST_LEFT_OUT)
    )
    return (
        "<details><summary>About this review</summary>\n\n"
        f"| | |\n| --- | --- |\n{table}\n{lines}\n\n</details>"
    )


def _shared(review: Review) -> Iterator[tuple[str, str]]:
    # The session is a file of the machine that the job ran on: nobody who reads the summary has it.
    return ((name, value) for name, value in facts(review) if name != "Session")


def _lines_of(line: int, end_line: int) -> str:
    return f"line {line}" if line == end_line else f"lines {line} to {end_line}"
