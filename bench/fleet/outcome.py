"""What a replayed review leaves: its session, its result and its posts, written by the code of the fleet."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel import EntryId, SessionId, SystemClock, rfc3339
from agent_core.messages import AssistantMessage, Text, UserMessage
from agent_core.transcript.entries import Header, MessageEntry
from bench.fleet.forge import ForgeChange, ReplayedHost
from tiller_server.fleet.posting.journal import SUMMARY, JournalHost, inline
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.posts import PostKey, PostStore
from tiller_server.fleet.store.results import FindingRow, JobCost, ResultStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.values import ChangeName, Job, SlotLease
from tiller_server.review.findings.result import Commit, Finding, Review, ReviewHeader
from tiller_server.review.outputs.json_report import render_json
from tiller_server.review.posting.ci_environment import GitHubPull
from tiller_server.review.posting.code_host import CheckReport
from tiller_server.review.posting.post import post_to

ENTRIES: Final = 25
ENTRY_CHARS: Final = 12_000
"""An entry is as long as a file that the model reads, or an answer with its thoughts."""
MOST_FINDINGS: Final = 6
CALLS: Final = 25
TOKENS: Final = 158_000
USD: Final = 0.12
KEPT_FINDINGS: Final = 0.6
"""Share of the findings of a change that the next push still has."""


class OutcomeWriter:
    """Writes what reviews leave."""

    def __init__(self, database: FleetDatabase, jobs: JobStore, *, seed: int) -> None:
        """Write to the tables of a replay."""
        self._database = database
        self._jobs = jobs
        self._results = ResultStore(database)
        self._posts = PostStore(database)
        self._chance = random.Random(seed)  # noqa: S311 - the same day each time
        self._source = "".join(
            path.read_text(encoding="utf-8")
            for path in sorted(Path(__file__).parents[2].glob("agent_core/session/**/*.py"))
        )
        self._changes: dict[ChangeName, ForgeChange] = {}
        self._found: dict[ChangeName, tuple[str, ...]] = {}
        self.requests = 0
        """To the forge."""

    @property
    def posts(self) -> int:
        """Comments, summaries and checks made."""
        return sum(change.posts for change in self._changes.values())

    @property
    def doubled(self) -> int:
        """Comments that the forge has twice for one finding."""
        return sum(
            len(change.threads) - len({one.fingerprint for one in change.threads})
            for change in self._changes.values()
        )

    def push(self, change: ChangeName, head: str) -> None:
        """Move the head of a change."""
        self._changes.setdefault(change, ForgeChange()).head = head

    async def review(self, job: Job, lease: SlotLease) -> None:
        """Write the session and the result of a review, and what is to be posted."""
        await self._session(job, lease)
        made = self._made(job)
        rows = [
            FindingRow(
                fingerprint=one.fingerprint,
                path=one.path,
                line=one.line,
                severity=one.severity,
                text_hash=one.fingerprint,
            )
            for one in made.findings
        ]
        cost = JobCost(calls=CALLS, tokens=TOKENS, usd=USD)
        content = render_json(made).encode()
        _ = self._results.save(job, lease, "review", content, findings=rows, cost=cost)
        keys = [inline(one.fingerprint) for one in made.findings]
        check = PostKey(target="check", fingerprint=job.head)
        self._posts.prepare(job, lease, [*keys, SUMMARY, check])

    async def post(self, job: Job, lease: SlotLease) -> None:
        """Send the posts, and confirm them."""
        replayed = ReplayedHost(self._changes[job.change])
        host = JournalHost(replayed, self._posts, job, lease)
        made = self._made(job)
        target = GitHubPull(repository=job.repo, number=job.number, token="")
        posted = await post_to(host, made, target, clock=SystemClock())
        if not posted.is_outdated:
            report = CheckReport(
                head=job.head, external_id=str(job.id), conclusion="neutral", title="", text=""
            )
            _ = await host.check(report)
            await host.settle()
        self.requests += replayed.requests

    async def _session(self, job: Job, lease: SlotLease) -> None:
        sessions = FleetSessions(self._database, lease)
        header = Header(id=SessionId(job.session), at_ms=job.created_ms, cwd=f"/{job.repo}")
        log = await sessions.create(header)
        parent: EntryId | None = None
        for number in range(ENTRIES):
            entry = EntryId(f"{number:08x}")
            text = (Text(text=self._text()),)
            message = (
                UserMessage(content=text, at_ms=job.created_ms)
                if number == 0
                else AssistantMessage(
                    content=text, api="", provider="", model="", stop_reason="stop", at_ms=0
                )
            )
            await log.append(
                [MessageEntry(id=entry, parent=parent, at_ms=job.created_ms, message=message)]
            )
            parent = entry
        await log.close()

    def _text(self) -> str:
        start = self._chance.randrange(len(self._source) - ENTRY_CHARS)
        return self._source[start : start + ENTRY_CHARS]

    def _made(self, job: Job) -> Review:
        """Return the review of a job, with some of the findings of the push before."""
        chance = random.Random(job.head)  # noqa: S311 - the same for each step of the job
        before = self._found.get(job.change, ())
        if not before or before[0] != job.head:
            kept = [name for name in before[1:] if chance.random() < KEPT_FINDINGS]
            new = [
                f"{chance.getrandbits(128):032x}" for _ in range(chance.randrange(MOST_FINDINGS))
            ]
            before = self._found[job.change] = (job.head, *kept, *new)
        return _review(job, before[1:])


def _review(job: Job, fingerprints: Sequence[str]) -> Review:
    commit = Commit(ref=job.head, sha=job.head)
    return Review(
        header=ReviewHeader(
            version="",
            model="lab/m",
            prompt_hash="0" * 16,
            base=commit,
            head=commit,
            merge_base=job.head,
            started_at=rfc3339(job.created_ms),
            ended_at=rfc3339(job.created_ms),
        ),
        summary="A change of the rounding of totals.",
        findings=tuple(
            Finding(
                path=f"src/part{name[:2]}.py",
                line=int(name[:4], 16) % 400 + 1,
                end_line=int(name[:4], 16) % 400 + 1,
                severity="warning",
                category="bug",
                title="The total is rounded before it is summed",
                message="A sum of rounded parts differs from the rounded sum. " * 4,
                evidence="total += round(part)",
                confidence=0.8,
                fingerprint=name,
            )
            for name in fingerprints
        ),
    )
