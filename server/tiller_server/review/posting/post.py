"""Posts a review: once, whatever happens on the way."""

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Final, assert_never

import anyio
from msgspec.structs import replace

from agent_core.kernel import Clock
from agent_core.kernel.text import readable
from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.outputs.summary import SHA_CHARS, counted, headline, place
from tiller_server.review.posting.ci_environment import (
    GiteaPull,
    GitHubPull,
    GitLabMerge,
    PostingTarget,
)
from tiller_server.review.posting.code_host import (
    CodeHost,
    CodeHostState,
    CommentDraft,
    Thread,
)
from tiller_server.review.posting.comment_markers import SummaryMark, write_summary_mark
from tiller_server.review.posting.comment_text import cut, draft, fixed_comment, summary_text
from tiller_server.review.posting.errors import HostUnsure
from tiller_server.review.posting.gitea import GiteaHost
from tiller_server.review.posting.github import GitHubHost
from tiller_server.review.posting.gitlab import GitLabHost
from tiller_server.review.posting.http_client import ANY_REQUEST, RequestRules

TRIES: Final = 4
FIRST_WAIT_S: Final = 3.0
CLOSE_S: Final = 2.0
CANNOT_CLOSE: Final = (
    "the token may not close conversations, so their comments only say that they are fixed "
    "(GitHub wants `contents: write` for that)"
)


class Plan(Value, frozen=True, kw_only=True):
    """Comments to post, change and close. The summary depends on the outcome."""

    new: tuple[Finding, ...]
    """Findings without a comment."""
    back: tuple[tuple[Thread, Finding], ...]
    """Comments that said that a finding was fixed, and it is there again."""
    fixed: tuple[Thread, ...]
    """Comments whose findings are gone."""
    posted: tuple[str, ...]
    """Fingerprints that have, or once had, a comment; those of `new` are not among them."""


def plan(review: Review, there: CodeHostState) -> Plan:
    """Return what follows from a review for the comments that are there.

    A finding with a comment gets no second one, wherever it has moved to. A comment that a person deleted or
    closed stays as they left it. A comment is taken for fixed when the review says so, or when the lines it stood
    on have changed and a review of everything finds it no more.
    """
    threads = {thread.fingerprint: thread for thread in there.threads}
    before = () if there.summary is None else there.summary.mark.posted
    posted = dict.fromkeys([*before, *threads])
    current = {finding.fingerprint: finding for finding in review.findings}
    gone = (thread for fingerprint, thread in threads.items() if fingerprint not in current)
    return Plan(
        new=tuple(finding for finding in current.values() if finding.fingerprint not in posted),
        back=tuple(
            (threads[fingerprint], finding)
            for fingerprint, finding in current.items()
            if fingerprint in threads and threads[fingerprint].is_fixed
        ),
        fixed=tuple(_fixed(review, gone)),
        posted=tuple(posted),
    )


def digest(review: Review, *, unplaced: Sequence[Finding], fixed: int) -> str:
    """Return a digest that changes when the summary has news for its readers.

    It does not cover the cost, the duration and the wording of the model, so that a second run of the same job changes
    nothing.
    """
    facts = (
        review.header.head.sha,
        sorted(finding.fingerprint for finding in review.findings),
        sorted(finding.fingerprint for finding in unplaced),
        review.partial,
        fixed,
    )
    return sha256(json.dumps(facts).encode()).hexdigest()[:16]


def describe(review: Review, there: CodeHostState) -> Iterator[str]:
    """Yield the steps of a plan, as sentences for the terminal."""
    steps = plan(review, there)
    for finding in steps.new:
        yield readable(f"comment on {place(finding)}: {finding.title}")
    for thread, finding in steps.back:
        yield readable(f"open comment {thread.comment} again, it is back: {finding.title}")
    for thread in steps.fixed:
        yield f"close comment {thread.comment}, its finding {thread.fingerprint} is fixed"
    verb = "post a summary" if there.summary is None else "bring the summary up to date"
    yield f"{verb}: {headline(review)} at {review.header.head.sha[:SHA_CHARS]}"


def _fixed(review: Review, gone: Iterator[Thread]) -> Iterator[Thread]:
    is_whole = review.partial is None and review.header.since is None
    for thread in gone:
        is_gone = thread.fingerprint in review.fixed or (thread.is_outdated and is_whole)
        if is_gone and not thread.is_fixed:
            yield thread


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


async def post_review(review: Review, target: PostingTarget, *, clock: Clock) -> PostingResult:
    """Post a review as comments and one summary.

    The state on the host is read first, and again after every failure, so that neither a second run nor a run after a
    killed one posts anything twice.

    Raises:
        PostingFailed: The host refused, or failed too often; comments posted by then stay.
    """
    async with open_host(target, clock) as host:
        return await post_to(host, review, target, clock=clock)


async def post_to(
    host: CodeHost, review: Review, target: PostingTarget, *, clock: Clock
) -> PostingResult:
    """Post a review to an open host, as `post_review` does."""
    before: CodeHostState | None = None
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


async def plan_review(review: Review, target: PostingTarget, *, clock: Clock) -> str:
    """Return what `post_review` would do, for `--dry-run`; nothing is written to the host.

    Raises:
        PostingFailed: The host cannot be read.
    """
    async with open_host(target, clock) as host:
        there = await host.read()
    if there.head != review.header.head.sha:
        return f"nothing: {_outdated(review, target, there)}\n"
    return "".join(f"would {step}\n" for step in describe(review, there))


@asynccontextmanager
async def open_host(
    target: PostingTarget, clock: Clock, *, rules: RequestRules = ANY_REQUEST
) -> AsyncGenerator[CodeHost]:
    """Open a change on its host; nothing is sent before something is asked."""
    host = _host(target, clock, rules)
    try:
        yield host
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await host.aclose()


def _host(target: PostingTarget, clock: Clock, rules: RequestRules) -> CodeHost:
    match target:
        case GitHubPull():
            return GitHubHost(target, clock=clock, rules=rules)
        case GitLabMerge():
            return GitLabHost(target, clock=clock, rules=rules)
        case GiteaPull():
            return GiteaHost(target, clock=clock, rules=rules)
        case _:
            assert_never(target)


async def _post(
    review: Review,
    target: PostingTarget,
    host: CodeHost,
    *,
    there: CodeHostState,
    before: CodeHostState,
) -> PostingResult:
    head = review.header.head.sha
    if there.head != head:
        return PostingResult(is_outdated=True, lines=(_outdated(review, target, there),))
    there = await _without_twins(host, there)
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


async def _without_twins(host: CodeHost, there: CodeHostState) -> CodeHostState:
    """Delete the younger of two comments of ours with one mark, which a process posted that was taken for dead."""
    kept: dict[str, Thread] = {}
    for thread in sorted(there.threads, key=lambda one: (len(one.comment), one.comment)):
        _ = kept.setdefault(thread.fingerprint, thread)
    twins = [thread for thread in there.threads if kept[thread.fingerprint] is not thread]
    for twin in (*twins, *there.other_summaries):
        await host.delete(twin)
    return replace(there, threads=tuple(kept.values()), other_summaries=())


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


def _with_report(posted: PostingResult, target: PostingTarget, *, is_closed: bool) -> PostingResult:
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


def _outdated(review: Review, target: PostingTarget, there: CodeHostState) -> str:
    return (
        f"{target} has moved on to {there.head[:12]} since {review.header.head.sha[:12]} was reviewed, "
        "so nothing was posted; the newer commit gets a review of its own"
    )
