"""Decides what a review changes among the comments that are there. Pure."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import readable
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.outputs.summary import SHA_CHARS, headline, place
from tiller_server.review.posting.code_host import CodeHostState, Thread


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
