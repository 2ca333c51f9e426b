"""Commits made of an agent's edits: the patch is the truth, so that each worker makes the same commit of it.

Git runs in the mirror, which no agent can write; the checkout is read through a shadow of its repository.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.resources.trust.evidence import gather
from agent_core.workspace.git.client import Git
from tiller_server.fleet.errors import BranchMoved, JobDeferred, PushRefused
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.values import Job
from tiller_server.fleet.worker.checkouts import NETWORK_WAIT_MS, Checkouts
from tiller_server.review.git.revisions import written_tree

PATCH: Final = ("diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color")
NAME: Final = "Tiller"
EMAIL: Final = "tiller@localhost"
MOVED: Final = (
    "stale info",
    "fetch first",
    "non-fast-forward",
    "cannot lock ref",
    "already exists",
)
REFUSED: Final = (
    *("[remote rejected]", "protected branch", "hook declined", "permission", "denied"),
    *("error: 403", "error: 401", "authentication failed", "could not read username"),
)


async def patch_of(git: Git, begun: str) -> bytes:
    """Return the edits in a checkout as a patch for `git apply`; empty: there are none. Ignored files are not in it.

    Args:
        git: With a shadow of the checkout's repository.
        begun: Tree of the checkout before the edits.
    """
    return await git.output(*PATCH, begun, await written_tree(git))


def remove_configuration(folder: Path) -> None:
    """Remove the files of a checkout that would configure its session, as settings, extensions and tool servers do. Blocks.

    Without them the workspace may be trusted, which edits need; a session cannot write such files without a person.

    Raises:
        EvidenceTooLarge: There are too many to be read.
        OSError: One cannot be removed.
    """
    for name in gather(folder.resolve()).files:
        (folder / name).unlink()


class ChangeCommits:
    """Patches and pushed branches of the jobs of one machine."""

    def __init__(self, checkouts: Checkouts) -> None:
        """Use the mirrors of the checkouts."""
        self._checkouts = checkouts

    async def apply(self, folder: Path, patch: bytes) -> None:
        """Apply a patch to a checkout that was just made, in which no agent has worked."""
        _ = await self._checkouts.git("-C", str(folder), "apply", "--binary", stdin=patch)

    async def commit(self, job: Job, patch: bytes, message: str) -> str:
        """Create the commit of a patch in the mirror, and return its hash: the same one each time."""
        mirror = self._checkouts.mirror(job)
        when = f"{job.created_ms // 1000} +0000"
        variables: Mapping[str, str] = {
            "GIT_INDEX_FILE": str(self._checkouts.folder(job) / "index"),
            **{f"GIT_{role}_NAME": NAME for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": EMAIL for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_DATE": when for role in ("AUTHOR", "COMMITTER")},
        }

        async def git(*arguments: str, stdin: bytes = b"") -> str:
            there = ("-C", str(mirror), *arguments)
            return await self._checkouts.git(*there, stdin=stdin, variables=variables)

        _ = await git("read-tree", job.head)
        _ = await git("apply", "--cached", "--binary", stdin=patch)
        tree = await git("write-tree")
        return await git("commit-tree", tree, "-p", job.head, stdin=message.encode())

    async def tip(self, job: Job, forge: Forge, branch: str) -> str:
        """Return the commit of a branch on the forge; empty: there is no such branch."""
        return await self._checkouts.tip(job, forge, branch)

    async def push(
        self, job: Job, forge: Forge, branch: str, commit: str, *, expected: str
    ) -> None:
        """Push a commit to a branch of the forge, if the branch is at the expected commit; empty: if there is none.

        Raises:
            BranchMoved: It is at another one.
            PushRefused: The token may not push it, or the repository forbids it.
            JobDeferred: The forge cannot be reached.
        """
        ref = f"refs/heads/{branch}"
        answer = await self._checkouts.ask(
            *("-C", str(self._checkouts.mirror(job)), "push", "--quiet", "--porcelain"),
            *("--no-verify", f"--force-with-lease={ref}:{expected}"),
            *("--", forge.clone_url.format(repo=job.repo), f"{commit}:{ref}"),
            forge=forge,
        )
        if not answer.code:
            return
        whole = f"{answer.output.decode(errors='replace')} {answer.errors}"
        reason = " ".join(whole.split())[-300:]
        if any(part in reason for part in MOVED):
            message = f"the branch {branch} was moved by another author ({reason})"
            raise BranchMoved(message)
        if any(part in reason.lower() for part in REFUSED):
            message = f"the branch {branch} cannot be pushed ({reason})"
            raise PushRefused(message)
        message = f"the branch {branch} cannot be pushed now ({reason})"
        raise JobDeferred(message, wait_ms=NETWORK_WAIT_MS)
