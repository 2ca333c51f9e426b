"""Posts a review: once, whatever happens on the way."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, assert_never

import anyio
from msgspec.structs import replace

from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.outputs.summary import counted
from tiller_server.review.posting.ci_environment import GitHubPull, GitLabMerge, Target
from tiller_server.review.posting.code_host import CodeHost, CodeHostState, CommentDraft
from tiller_server.review.posting.comment_markers import SummaryMark, write_summary_mark
from tiller_server.review.posting.comment_text import cut, draft, fixed_comment, summary_text
from tiller_server.review.posting.errors import HostUnsure
from tiller_server.review.posting.github import GitHubHost
from tiller_server.review.posting.gitlab import GitLabHost
from tiller_server.review.posting.plan import Plan, describe, digest, plan

TRIES: Final = 4
FIRST_WAIT_S: Final = 3.0
CLOSE_S: Final = 2.0
CANNOT_CLOSE: Final = (
    "the token may not close conversations, so their comments only say that they are fixed "
    "(GitHub wants `contents: write` for that)"
)


class PostingResult(Value, frozen=True, kw_only=True):
    """Result of posting a review."""

    new: int = 0
    """Comments posted."""
    fixed: int = 0
    """Comments closed."""
    unplaced: int = 0
    """Findings that are told in the summary alone, because the host took no comment on their place."""
    is_outdated: bool = False
    """The change has a newer commit: nothing was posted, its own review will be."""
    lines: tuple[str, ...] = ()
    """Report of the result, one sentence each."""


async def post_review(review: Review, target: Target, *, clock: Clock) -> PostingResult:
    """Post a review as comments and one summary.

    The state on the host is read first, and again after every failure, so that neither a second run nor a run after a
    killed one posts anything twice.

    Raises:
        PostingFailed: The host refused, or failed too often; comments posted by then stay.
    """
    before: CodeHostState | None = None
    async with _opened(target, clock) as host:
        for attempt in range(TRIES):
            try:
                there = await host.read()
                before = before or there
                return await _post(review, target, host, there=there, before=before)
            except HostUnsure:
                if attempt == TRIES - 1:
                    raise
            await clock.sleep(FIRST_WAIT_S * 2**attempt)
    raise AssertionError  # the last attempt returns or raises


async def plan_review(review: Review, target: Target, *, clock: Clock) -> str:
    """Return what `post_review` would do, for `--dry-run`; nothing is written to the host.

    Raises:
        PostingFailed: The host cannot be read.
    """
    async with _opened(target, clock) as host:
        there = await host.read()
    if there.head != review.header.head.sha:
        return f"nothing: {_outdated(review, target, there)}\n"
    return "".join(f"would {step}\n" for step in describe(review, there))


@asynccontextmanager
async def _opened(target: Target, clock: Clock) -> AsyncGenerator[CodeHost]:
    host = _host(target, clock)
    try:
        yield host
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await host.aclose()


def _host(target: Target, clock: Clock) -> CodeHost:
    match target:
        case GitHubPull():
            return GitHubHost(target, clock=clock)
        case GitLabMerge():
            return GitLabHost(target, clock=clock)
        case _:
            assert_never(target)


async def _post(
    review: Review, target: Target, host: CodeHost, *, there: CodeHostState, before: CodeHostState
) -> PostingResult:
    head = review.header.head.sha
    if there.head != head:
        return PostingResult(is_outdated=True, lines=(_outdated(review, target, there),))
    steps = plan(review, there)
    drafts = [_draft(finding, review, host) for finding in steps.new]
    unplaced = await host.comment(drafts, head=head) if drafts else ()
    may_close = await _close(steps, host, head=head)
    may_open = await _open_again(steps, review, host)
    fixed = len(steps.fixed) + sum(thread.is_fixed for thread in there.threads) - len(steps.back)
    missed = {finding.fingerprint for finding in unplaced}
    placed = [f.fingerprint for f in steps.new if f.fingerprint not in missed]
    mark = SummaryMark(
        head=head,
        digest=digest(review, unplaced=unplaced, fixed=fixed),
        posted=(*steps.posted, *placed),
    )
    text = summary_text(review, unplaced=unplaced, fixed=fixed)
    await _summarise(host, there, mark, text)
    posted = PostingResult(
        new=len(placed) + len(there.threads) - len(before.threads),
        fixed=fixed - sum(thread.is_fixed for thread in before.threads) + len(steps.back),
        unplaced=len(unplaced),
    )
    return _with_report(posted, target, is_closed=may_close and may_open)


def _draft(finding: Finding, review: Review, host: CodeHost) -> CommentDraft:
    return draft(finding, review, offer=host.offer, limit_chars=host.comment_chars)


async def _close(steps: Plan, host: CodeHost, *, head: str) -> bool:
    may = True
    for thread in steps.fixed:
        # Closed before it is marked: a run that is killed in between is made good by the next one.
        if not thread.is_resolved:
            may = await host.resolve(thread) and may
        body = fixed_comment(thread.body, thread.fingerprint, head=head)
        await host.edit(thread, cut(body, limit_chars=host.comment_chars))
    return may


async def _open_again(steps: Plan, review: Review, host: CodeHost) -> bool:
    may = True
    for thread, finding in steps.back:
        if thread.is_resolved:
            may = await host.reopen(thread) and may
        await host.edit(thread, _draft(finding, review, host).plain_body)
    return may


async def _summarise(host: CodeHost, there: CodeHostState, mark: SummaryMark, text: str) -> None:
    body = cut(f"{write_summary_mark(mark)}\n{text}", limit_chars=host.comment_chars)
    summary = there.summary
    if summary is None:
        await host.write_summary(body)
    elif (summary.mark.head, summary.mark.digest) != (mark.head, mark.digest):
        await host.edit_summary(summary, body)


def _with_report(posted: PostingResult, target: Target, *, is_closed: bool) -> PostingResult:
    lines = [
        f"posted on {target}: {counted(posted.new, 'new comment')}, {posted.fixed} closed as fixed"
    ]
    if posted.unplaced:
        are = "finding is" if posted.unplaced == 1 else "findings are"
        lines.append(
            f"{posted.unplaced} {are} told in the summary alone: the lines are not part of the change there"
        )
    if not is_closed:
        lines.append(CANNOT_CLOSE)
    return replace(posted, lines=tuple(lines))


def _outdated(review: Review, target: Target, there: CodeHostState) -> str:
    return (
        f"{target} has moved on to {there.head[:12]} since {review.header.head.sha[:12]} was reviewed, "
        "so nothing was posted; the newer commit gets a review of its own"
    )
