"""Makes a review: a change in, checked findings out."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import Budgets
from agent_core.kernel import JsonValue, MessageId, SessionId
from agent_core.kernel.clock import rfc3339
from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from agent_core.session.runs.usage import tightened
from agent_core.transcript.entries import REVIEW_TITLE
from agent_core.workspace.git.client import open_git, scratch_folder
from tiller_server import VERSION
from tiller_server.review.findings.baseline import not_accepted, read_baseline
from tiller_server.review.findings.deduplication import left, limited, merged
from tiller_server.review.findings.incremental import (
    ChangesSince,
    find_since,
    hunks_to_read,
    persisting_findings,
)
from tiller_server.review.findings.redaction import redacted
from tiller_server.review.findings.rejections import not_rejected
from tiller_server.review.findings.result import (
    Dropped,
    Finding,
    Review,
    ReviewedFile,
    ReviewHeader,
)
from tiller_server.review.findings.sanitizer import markdown_of
from tiller_server.review.findings.verification import FindingRejected
from tiller_server.review.git.change_set import ReviewChangeSet, prepare_change
from tiller_server.review.git.diff import GitDiffHunk
from tiller_server.review.git.head_files import HeadFiles, head_folder
from tiller_server.review.git.revisions import Revisions, find_revisions
from tiller_server.review.model.budget import ReviewBudgetTracker
from tiller_server.review.model.chunks import ReviewChunk, divide, reviewed
from tiller_server.review.model.passes import ModelReviewer, ModelReviewResult
from tiller_server.review.model.prompt_injection import injection_findings
from tiller_server.review.model.prompts import prompt_hash
from tiller_server.review.model.report_tool import TOOL, Reports
from tiller_server.review.model.stored_runs import StoredRun, stored_runs
from tiller_server.review.options import (
    NullReviewWatcher,
    ReviewCancellation,
    ReviewOrder,
    ReviewWatcher,
)
from tiller_server.review.rules import BASELINE, ProjectRules, read_rules

TOOLS: Final = ("read", "grep", "find", "ls", TOOL)
CHARS_OF_A_TOKEN: Final = 3
"""Code has fewer than prose."""
WINDOW_SHARE: Final = 3
"""A part takes this share of the model's window at most; the rest is for what it reads around it."""
NOTHING: Final = "There is nothing to look at in this change."
NOBODY: Final = "none"
"""The model of a review that asked none."""


class ReviewInputs(Value, frozen=True, kw_only=True):
    """Inputs of a review, complete before the model is asked."""

    order: ReviewOrder
    started_ms: int
    revisions: Revisions
    rules: ProjectRules
    change: ReviewChangeSet
    since: ChangesSince | None
    hunks: Mapping[str, tuple[GitDiffHunk, ...]] | None
    """By path, what of each file is new since the earlier review; None: there was none."""
    reports: Reports


class ReviewRun(Struct, kw_only=True):
    """A review while it is made."""

    given: ReviewInputs
    parts: tuple[ReviewChunk, ...]
    spending: ReviewBudgetTracker
    look: ModelReviewResult = msgspec.field(default_factory=ModelReviewResult)
    stop: ReviewCancellation = msgspec.field(default_factory=ReviewCancellation)
    model: str = NOBODY
    location: str | None = None


async def review(
    order: ReviewOrder,
    request: SessionRequest,
    *,
    watcher: ReviewWatcher | None = None,
    stop: ReviewCancellation | None = None,
) -> Review:
    """Review a change. An early end of the model's work results in a partial review, not in an error.

    Args:
        order: Change to review, and which findings to keep.
        request: How sessions are opened; its workspace is somewhere in the repository. The model's session works in the
            files of the head, reads only, and trusts the project only when the request says so. A session of a review
            that was interrupted is continued: parts with a finished run are not asked again.
        watcher: Receives the progress; None: no watcher.
        stop: Ends the review between two runs; None: no stop.

    Raises:
        UsageError: The review cannot begin: no repository, no such commit, no usable model, an unreadable baseline.
        GitFailed: A command of Git failed.
    """
    async with scratch_folder() as scratch:
        watching = watcher or NullReviewWatcher()
        work = await _prepare(order, request, scratch)
        work.stop = stop or work.stop
        accepted = _accepted(order, work.given.rules)
        if work.parts:
            async with head_folder(work.given.revisions, scratch=scratch) as folder:
                await _ask(work, _session_request(work, request, folder), watching)
        made = await _conclude(work, accepted=accepted, ended_ms=request.clock.now_ms())
        made = redacted(made, request.redactor)
        watching.texts(await work.given.reports.files.lines_of({one.path for one in made.findings}))
        return made


async def _prepare(order: ReviewOrder, request: SessionRequest, scratch: Path) -> ReviewRun:
    started_ms = request.clock.now_ms()
    request.redactor.hold_environment(request.env)
    git = await open_git(
        request.workspace, env=request.env, scratch=scratch, roots=request.added.trusted
    )
    revisions = await find_revisions(git, base=order.base, head=order.head, env=request.env)
    change = await prepare_change(revisions, scope=order.scope, scratch=scratch)
    rules = await read_rules(revisions.git, revisions.base.sha)
    since = None if order.earlier is None else await find_since(revisions, order.earlier)
    hunks = None if since is None else await anyio.to_thread.run_sync(hunks_to_read, change, since)
    given = ReviewInputs(
        order=order,
        started_ms=started_ms,
        revisions=revisions,
        rules=rules,
        change=change,
        since=since,
        hunks=hunks,
        reports=Reports(files=HeadFiles(revisions, change), cleaner=request.redactor),
    )
    return ReviewRun(
        given=given,
        parts=await _parts(change, hunks, order.part_chars),
        spending=ReviewBudgetTracker(budgets=order.budgets, started_s=request.clock.monotonic_s()),
    )


async def _ask(work: ReviewRun, request: SessionRequest, watcher: ReviewWatcher) -> None:
    """Have the model look at the parts, then let what steers reviewers be seen without it."""
    stored = await _stored_runs(request)
    async with open_session(request) as session:
        watcher.opened(session)
        work.spending.budgets = _budgets(work.given.order, session)
        room = session.info.context_usage().size * CHARS_OF_A_TOKEN // WINDOW_SHARE
        if 0 < room < work.given.order.part_chars:
            work.parts = await _parts(work.given.change, work.given.hunks, room)
        reviewer = ModelReviewer(
            session=session,
            clock=request.clock,
            spending=work.spending,
            watcher=watcher,
            rules=work.given.rules,
            wishes=work.given.order.wishes,
            left_out=work.given.change.left_out,
            stop=work.stop,
            reports=work.given.reports,
            stored=stored,
        )
        title = f"{REVIEW_TITLE}{work.given.revisions.head.ref}"
        if session.tree.title != title:
            with suppress(TillerError):  # a title is only a help
                await session.tree.rename(title)
        work.look = await reviewer.review_parts(work.parts)
        if len(work.parts) > 1 and work.look.stopped is None:
            await reviewer.summarise(work.look, work.given.reports.found)
        snapshot = session.info.snapshot()
        work.model = snapshot.config.model or NOBODY
        work.location = session.info.location


async def _stored_runs(request: SessionRequest) -> Mapping[MessageId, StoredRun]:
    if request.session == "new" or isinstance(request.store, str):
        return {}
    session = await request.store.read(SessionId(request.session))
    return stored_runs(session.entries)


async def _parts(
    change: ReviewChangeSet, hunks: Mapping[str, tuple[GitDiffHunk, ...]] | None, part_chars: int
) -> tuple[ReviewChunk, ...]:
    return await anyio.to_thread.run_sync(
        lambda: divide(change.files, hunks=hunks, part_chars=part_chars)
    )


def _session_request(work: ReviewRun, request: SessionRequest, folder: Path) -> SessionRequest:
    above = dict(request.settings.get("request", {}))
    above["permission"] = {"mode": "plan", "fallback": "rules"}
    above.pop("budgets", None)
    settings: Mapping[str, JsonValue] = above
    return replace(
        request,
        workspace=folder,
        folder=work.given.revisions.root,
        purpose="review",
        settings={**request.settings, "request": settings},
        workflow="review",
        tools=TOOLS,
        custom_tools=(*request.custom_tools, work.given.reports.tool()),
        trusted=request.trusted is True,
    )


def _budgets(order: ReviewOrder, session: AgentSession) -> Budgets:
    """Return what holds: the ceiling counts for models whose price is known."""
    facts = session.models.current
    wanted = order.budgets
    if wanted.usd is None and facts is not None and facts.prices is not None:
        wanted = replace(wanted, usd=order.ceiling_usd)
    return tightened(session.info.config.budgets or Budgets(), wanted)


def _accepted(order: ReviewOrder, rules: ProjectRules) -> frozenset[str]:
    if order.accepted is not None:
        return order.accepted
    if rules.baseline is None:
        return frozenset()
    return read_baseline(rules.baseline, name=f"{BASELINE} of the base")


async def _conclude(work: ReviewRun, *, accepted: frozenset[str], ended_ms: int) -> Review:
    earlier = work.given.order.earlier
    carried = (
        ()
        if earlier is None
        else await persisting_findings(
            earlier.findings, since=work.given.since, files=work.given.reports.files
        )
    )
    await _see_steering(work)
    found, twins = merged(work.given.reports.found, carried=carried)
    rejected = work.given.order.rejected
    paths = {one.path for one in found} if accepted or rejected else ()
    texts = await work.given.reports.files.lines_of(paths)
    not_in_baseline = not_accepted(found, accepted, texts=texts)
    wanted = not_rejected(not_in_baseline, rejected, texts=texts)
    unsure = [one for one in wanted if one.confidence < work.given.order.least_confidence]
    sure = [one for one in wanted if one.confidence >= work.given.order.least_confidence]
    shown, over = limited(sure, most=work.given.order.most_findings)
    least = work.given.order.least_confidence
    dropped: tuple[Dropped, ...] = (
        *work.given.reports.refused,
        *twins,
        *(left(one, f"confidence {one.confidence:.2f} is below {least:.2f}") for one in unsure),
        *over,
    )
    names = {one.fingerprint for one in found}
    gone = () if earlier is None else [one.fingerprint for one in earlier.findings]
    return Review(
        header=_header(work, ended_ms),
        summary=markdown_of(work.given.reports.cleaner.text(work.look.summary))
        or _own_summary(work, shown),
        findings=shown,
        dropped=dropped,
        accepted=len(found) - len(not_in_baseline),
        suppressed=len(not_in_baseline) - len(wanted),
        fixed=tuple(name for name in gone if name not in names),
        partial=_partial(work),
        stopped=work.look.stopped,
        files=_files(work),
        left_out=work.given.change.left_out,
    )


def _files(work: ReviewRun) -> tuple[ReviewedFile, ...]:
    """Name what was looked at, also by the earlier review, as long as it is part of the change."""
    read = list(work.look.read)
    if work.given.since is not None:
        again = {piece.file.path for part in work.parts for piece in part.pieces}
        read += [
            reviewed(file)
            for file in work.given.change.files
            if file.path in work.given.since.read and file.path not in again
        ]
    return tuple(read)


async def _see_steering(work: ReviewRun) -> None:
    paths = {piece.file.path for part in work.parts for piece in part.pieces}
    sides = [await work.given.reports.files.side(path) for path in sorted(paths)]
    there = [side for side in sides if side is not None]
    for raw in await anyio.to_thread.run_sync(injection_findings, there):
        with suppress(FindingRejected):
            _ = await work.given.reports.take(raw)


def _header(work: ReviewRun, ended_ms: int) -> ReviewHeader:
    return ReviewHeader(
        version=VERSION,
        model=work.model,
        prompt_hash=prompt_hash(work.given.rules, work.given.order.wishes),
        base=work.given.revisions.base,
        head=work.given.revisions.head,
        merge_base=work.given.revisions.merge_base,
        since=None if work.given.since is None else work.given.since.commit,
        started_at=rfc3339(work.given.started_ms),
        ended_at=rfc3339(ended_ms),
        turns=work.spending.turns,
        tokens=work.spending.tokens,
        cost_usd=work.spending.cost_usd,
        session=work.location,
    )


def _partial(work: ReviewRun) -> str | None:
    if work.look.stopped is None:
        return None
    read = {one.path for one in work.look.read}
    wanted = {piece.file.path for part in work.parts for piece in part.pieces}
    why = (work.look.why or work.look.stopped).rstrip(".")
    return f"{len(read)} of {len(wanted)} files were looked at: {why}."


def _own_summary(work: ReviewRun, shown: Sequence[Finding]) -> str:
    if not work.parts:
        return NOTHING if work.given.since is None else "Nothing has changed since the last review."
    count = len(work.look.read)
    files = "1 file" if count == 1 else f"{count} files"
    found = (
        "Nothing was found"
        if not shown
        else f"{len(shown)} findings"
        if len(shown) > 1
        else "1 finding"
    )
    return f"{files} looked at. {found}."
