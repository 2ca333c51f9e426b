"""A pushed branch and its pull request in the outbox: stored as sent before they are, and confirmed by looking."""

from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

from anyio.to_thread import run_sync

from tiller_server.fleet.errors import BranchMoved, PushRefused
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.posting.journal import EDITED, hash_of
from tiller_server.fleet.posting.pull_requests import PullRequest, PullRequestHost, PullText
from tiller_server.fleet.store.posts import Post, PostKey, PostState, PostStore
from tiller_server.fleet.values import SCHEDULE, Job, SlotLease, prompt_digest
from tiller_server.review.posting.errors import HostUnsure
from tiller_server.review.posting.http_client import WriteGuard

NO_PUSH: Final = "the settings do not let the fleet push to this forge"


class ReadTip(Protocol):
    """Reader of the tip of a branch on the forge."""

    async def __call__(self, branch: str) -> str:
        """Return the commit; empty: there is no such branch."""
        ...


class PushBranch(Protocol):
    """A push to the forge."""

    async def __call__(self, branch: str, commit: str, *, expected: str) -> None:
        """Push a commit, if the branch is at the expected one."""
        ...


def branch_of(job: Job) -> str:
    """Return the name of the branch of a job: one per schedule, or per change and prompt, so that a later job updates it."""
    if job.cause.startswith(SCHEDULE):
        return f"tiller/{job.kind}-{job.cause.removeprefix(SCHEDULE)}"
    change = f"{job.number}-" if job.number else ""
    digest = prompt_digest(f"{job.base} {job.prompt}")
    return f"tiller/{job.kind}-{change}{digest}"


class BranchOutbox:
    """The branch and the pull request of one job."""

    def __init__(self, posts: PostStore, job: Job, lease: SlotLease) -> None:
        """Read and write the outbox with the lease of the worker that has the job."""
        self._posts = posts
        self._job = job
        self._lease = lease
        self.branch: Final = branch_of(job)
        self._branch_key = PostKey(target="branch", fingerprint=self.branch)
        self._pull_key = PostKey(target="pull", fingerprint=self.branch)

    async def prepare(self) -> None:
        """Store both as intended."""
        keys = [self._branch_key, self._pull_key]
        await run_sync(self._posts.prepare, self._job, self._lease, keys)

    async def drop(self, reason: str) -> None:
        """Drop both: the patch is all that there is."""
        rows = {key: {"reason": reason} for key in (self._branch_key, self._pull_key)}
        await self._write("dropped", rows)

    async def push(self, commit: str, *, tip: ReadTip, push: PushBranch, guard: WriteGuard) -> bool:
        """Push the branch once; returns whether the forge has it. A branch that a person moved stays as it is.

        Args:
            commit: The commit to push.
            tip: Reads the branch on the forge.
            push: Pushes it.
            guard: Called right before the push; raises to prevent it.
        """
        row = (await self._rows())[self._branch_key]
        there = await tip(self.branch)
        if there != commit:
            if there not in {"", row.sent_hash, row.confirmed_hash}:
                await self.drop(f"the branch {self.branch} was moved by another author")
                return False
            await guard()
            await self._write(
                "sent", {self._branch_key: {"sent_hash": commit, "confirmed_hash": there}}
            )
            pass_point("push.sending")
            try:
                await push(self.branch, commit, expected=there)
            except (BranchMoved, PushRefused) as error:
                await self.drop(str(error))
                return False
            pass_point("push.sent")
        done = {"sent_hash": commit, "confirmed_hash": commit, "forge_id": commit}
        await self._write("confirmed", {self._branch_key: done})
        return True

    async def open_pull(self, pulls: PullRequestHost, base: str, wanted: PullText) -> None:
        """Open the pull request of the branch, or edit the one that is open; one that a person edited stays as it is."""
        row = (await self._rows())[self._pull_key]
        pull = await pulls.find(self.branch, base)
        seen = digest = _hash_of(wanted)
        if pull is None:
            await self._write("sent", {self._pull_key: {"sent_hash": digest}})
            pass_point("pull.sending")
            await pulls.open(self.branch, base, wanted)
            pass_point("pull.sent")
            pull = await pulls.find(self.branch, base)
            if pull is None:
                message = f"the pull request of {self.branch} was opened and is not listed yet"
                raise HostUnsure(message)
            seen = _hash_of(pull)
        elif _hash_of(pull) != digest:
            if _hash_of(pull) not in {row.sent_hash, row.confirmed_hash}:
                columns = {"reason": EDITED, "forge_id": str(pull.number)}
                await self._write("dropped", {self._pull_key: columns})
                return
            columns = {"sent_hash": digest, "confirmed_hash": _hash_of(pull)}
            await self._write("sent", {self._pull_key: columns})
            pass_point("pull.sending")
            await pulls.edit(pull, wanted)
            pass_point("pull.sent")
        confirmed = {"forge_id": str(pull.number), "confirmed_hash": seen}
        await self._write("confirmed", {self._pull_key: confirmed})

    async def outcome(self) -> str:
        """Return where the change is, in one sentence."""
        rows = await self._rows()
        branch, pull = rows.get(self._branch_key), rows.get(self._pull_key)
        if branch is None or branch.job != self._job.id:
            return f"{NO_PUSH}; its patch is kept"
        if branch.state != "confirmed" or pull is None:
            return f"{branch.reason}; its patch is kept"
        edited = f" ({pull.reason})" if pull.reason else ""
        return f"pull request {pull.forge_id} from the branch {self.branch}{edited}"

    async def _rows(self) -> Mapping[PostKey, Post]:
        return await run_sync(self._posts.of_change, self._job.change)

    async def _write(
        self, state: PostState, values: Mapping[PostKey, Mapping[str, str | None]]
    ) -> None:
        await run_sync(partial(self._posts.write, self._job, self._lease, state, values))


def _hash_of(text: PullText | PullRequest) -> str:
    return hash_of(f"{text.title}\n{text.body}")
