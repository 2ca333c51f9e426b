"""PROTOCOL.md says what follows each kind of a provider's failure as the code has it."""

from typing import get_args

import pytest

from agent_core.events import ChangeCounts, RunResult, UsageReport
from agent_core.kernel import RunId
from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.messages import Usage
from agent_core.session.context import failure_of, status_of
from agent_core.session.runs.retry_policy import (
    AttemptFailed,
    CompactAndContinue,
    NextAction,
    RetryAfter,
    RetryOptions,
    RetryWithoutThinking,
    StopRun,
    next_action,
)
from tiller_server.cli.exit_codes import code_of_run
from tiller_server.lsp.wire.schema import PROTOCOL_PAGE

KINDS: tuple[ProviderErrorKind, ...] = get_args(ProviderErrorKind)
BEGIN, END = "<!-- provider-errors:begin -->", "<!-- provider-errors:end -->"
COLUMNS = ["Kind", "When", "What follows", "Kind on the wire", "`tiller run`"]
WORDS: dict[type[NextAction], str] = {
    RetryAfter: "retry",
    CompactAndContinue: "compact",
    RetryWithoutThinking: "plain",
    StopRun: "stop",
}


def follows(
    kind: ProviderErrorKind,
    text: str = "it failed",
    *,
    status: int | None = None,
    retry_after_s: float | None = None,
    tries: int = 0,
    again: bool = False,
) -> str:
    """Give the first word of what follows; `again`: compacting and leaving out were tried already."""
    error = ProviderError(
        text, reason=kind, provider="p", status=status, retry_after_s=retry_after_s
    )
    settings = RetryOptions(max_retries=2, max_delay_ms=1_000)
    found = next_action(
        AttemptFailed(error=error),
        tries=tries,
        compacted=again,
        plain=again,
        auto_compact=True,
        settings=settings,
    )
    return WORDS[type(found)]


def described(kind: ProviderErrorKind) -> str:
    """Say all that may follow, in the words of the page."""
    usual = follows(kind)
    if usual == "compact":
        return f"compact once, then {follows(kind, again=True)}"
    if usual == "retry" and follows(kind, status=413) == "stop":
        return "retry; stop at status 413"
    if usual == "stop" and follows(kind, "bad thinking signature") == "plain":
        return f"plain once, if earlier thoughts or calls are refused; else {usual}"
    return usual


def rows() -> dict[str, list[str]]:
    page = PROTOCOL_PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    assert head == COLUMNS
    return {cells[0].strip("`"): cells[1:] for cells in body}


def test_every_kind_has_its_row_in_order() -> None:
    assert tuple(rows()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_says_what_the_code_does(kind: ProviderErrorKind) -> None:
    error = ProviderError("it failed", reason=kind, provider="p")
    failure = failure_of(error)
    ended = RunResult(
        run=RunId("r"),
        status=status_of(error),
        text="",
        usage=UsageReport(tokens=Usage(), context_used=0, context_size=0),
        changes=ChangeCounts(),
        error=failure,
    )
    code = code_of_run(ended)
    when, then, wire, exit_code = rows()[kind]
    assert when
    assert then == described(kind)
    assert wire == f"`{failure.kind}`"
    assert exit_code == str(code)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_tried_again_has_an_end(kind: ProviderErrorKind) -> None:
    text = "bad thinking signature"
    assert follows(kind, text, tries=2, again=True) == "stop"
    assert follows(kind, text, retry_after_s=1.5, again=True) == "stop"
