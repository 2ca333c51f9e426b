"""A code host whose posts are in the outbox: stored as sent before they are, and confirmed by looking."""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Final

from anyio.to_thread import run_sync
from typing_extensions import override

from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.store.posts import Post, PostKey, PostState, PostStore
from tiller_server.fleet.values import Job, SlotLease
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.posting.code_host import (
    CheckReport,
    CodeHost,
    CodeHostState,
    CommentDraft,
    Summary,
    Thread,
)

SUMMARY: Final = PostKey(target="summary", fingerprint="")
EDITED: Final = "a person edited it, so it stays as it is"
DELETED: Final = "a person deleted the comment"
UNPLACED: Final = "the forge takes no comment on its lines; the summary tells of it"
NO_CHECK: Final = "the forge has no checks, or the token may not write them"


def hash_of(body: str) -> str:
    """Return the hash of a text as forges store it, which change ends of lines and blanks around it."""
    return sha256("\n".join(body.strip().splitlines()).encode(errors="replace")).hexdigest()


def inline(fingerprint: str) -> PostKey:
    """Return the key of the comment on a finding."""
    return PostKey(target="inline", fingerprint=fingerprint)


class JournalHost(CodeHost):
    """A host for one job. Writes that a lost lease or an ended job forbids raise before anything is sent."""

    def __init__(self, host: CodeHost, posts: PostStore, job: Job, lease: SlotLease) -> None:
        """Wrap a host; the caller closes it."""
        self.comment_chars = host.comment_chars
        self._host = host
        self._posts = posts
        self._job = job
        self._lease = lease
        self._rows: Mapping[PostKey, Post] = {}
        self._unplaced: set[str] = set()

    @override
    def offer(self, suggestion: Suggestion) -> str | None:
        return self._host.offer(suggestion)

    @override
    async def read(self) -> CodeHostState:
        there = await self._host.read()
        await self._load()
        seen = {inline(one.fingerprint): one for one in reversed(there.threads)}
        own: dict[PostKey, Thread | Summary] = {**seen}
        if there.summary is not None:
            own[SUMMARY] = there.summary
        confirmed = {
            key: {"forge_id": one.comment, "confirmed_hash": hash_of(one.body)}
            for key, one in own.items()
            if (row := self._rows.get(key)) is not None and _has_arrived(row, one)
        }
        await self._write("confirmed", confirmed)
        return there

    @override
    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        keys = {inline(one.finding.fingerprint): hash_of(one.body) for one in drafts}
        await self._sending(keys)
        unplaced = await self._host.comment(drafts, head=head)
        pass_point("post.sent")
        self._unplaced |= {finding.fingerprint for finding in unplaced}
        return unplaced

    @override
    async def edit(self, thread: Thread, body: str) -> None:
        key = inline(thread.fingerprint)
        if await self._may_edit(key, thread):
            await self._sending({key: hash_of(body)})
            await self._host.edit(thread, body)
            pass_point("post.sent")

    @override
    async def resolve(self, thread: Thread) -> bool:
        return await self._host.resolve(thread)

    @override
    async def reopen(self, thread: Thread) -> bool:
        return await self._host.reopen(thread)

    @override
    async def write_summary(self, body: str) -> None:
        await self._sending({SUMMARY: hash_of(body)})
        await self._host.write_summary(body)
        pass_point("post.sent")

    @override
    async def edit_summary(self, summary: Summary, body: str) -> None:
        if await self._may_edit(SUMMARY, summary):
            await self._sending({SUMMARY: hash_of(body)})
            await self._host.edit_summary(summary, body)
            pass_point("post.sent")

    @override
    async def head(self) -> str:
        return await self._host.head()

    @override
    async def delete(self, own: Thread | Summary) -> None:
        await self._host.delete(own)

    @override
    async def check(self, report: CheckReport) -> str | None:
        key = PostKey(target="check", fingerprint=report.head)
        await self._sending({key: hash_of(report.text)})
        written = await self._host.check(report)
        pass_point("post.sent")
        if written is None:
            await self._write("dropped", {key: {"reason": NO_CHECK}})
        else:
            await self._write("confirmed", {key: {"forge_id": written}})
        return written

    @override
    async def aclose(self) -> None:
        await self._host.aclose()

    async def settle(self) -> None:
        """Look again, and end the posts of this job: each is confirmed or dropped with its reason."""
        there = await self.read()
        await self._load()
        rest = [
            row
            for row in self._rows.values()
            if row.job == self._job.id and row.state in {"intended", "sent"}
        ]
        dropped: dict[PostKey, Mapping[str, str | None]] = {}
        for row in rest:
            if row.target == "inline":
                is_unplaced = row.fingerprint in self._unplaced
                dropped[row.key] = {"reason": UNPLACED if is_unplaced else DELETED}
            elif row.target == "summary" and there.summary is not None:
                if _is_edited(row, there.summary):
                    dropped[row.key] = {"reason": EDITED}
                else:  # it had no news for its readers
                    seen = {"confirmed_hash": hash_of(there.summary.body)}
                    await self._write(
                        "confirmed", {row.key: {"forge_id": there.summary.comment, **seen}}
                    )
        await self._write("dropped", dropped)
        pass_point("post.confirmed")

    async def _may_edit(self, key: PostKey, own: Thread | Summary) -> bool:
        row = self._rows.get(key)
        if row is None or not _is_edited(row, own):
            return True
        await self._write("dropped", {key: {"reason": EDITED}})
        return False

    async def _sending(self, hashes: Mapping[PostKey, str]) -> None:
        """Store posts as sent, before they are."""
        missing = [key for key in hashes if key not in self._rows]
        if missing:
            await run_sync(self._posts.prepare, self._job, self._lease, missing)
        await self._write("sent", {key: {"sent_hash": value} for key, value in hashes.items()})
        await self._load()
        pass_point("post.sending")

    async def _load(self) -> None:
        self._rows = await run_sync(self._posts.of_change, self._job.change)

    async def _write(
        self, state: PostState, values: Mapping[PostKey, Mapping[str, str | None]]
    ) -> None:
        if values:
            write = partial(self._posts.write, self._job, self._lease, state, values)
            await run_sync(write)


def _has_arrived(row: Post, own: Thread | Summary) -> bool:
    """Return whether what is on the forge is the post that was intended or sent."""
    if row.state == "sent":
        return not row.confirmed_hash or hash_of(own.body) == row.sent_hash
    return row.state == "intended" and row.target == "inline" and not row.confirmed_hash


def _is_edited(row: Post, own: Thread | Summary) -> bool:
    return bool(row.confirmed_hash) and hash_of(own.body) not in {
        row.confirmed_hash,
        row.sent_hash,
    }
