"""Finds the two commits that a review compares."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio.to_thread

from agent_core.kernel.records import dataclass
from server.review.errors import GitFailed, NotARepository, RevisionUnknown
from server.review.findings import Commit
from server.review.git import Git

WORKING_TREE: Final = "working tree"
"""The name of a head that is what lies on the disk, committed or not."""
USUAL_BASES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
DEEPEN: Final = (
    "the clone is shallow: fetch the whole history (fetch-depth: 0 for actions/checkout, GIT_DEPTH: 0 in GitLab, "
    "git fetch --unshallow by hand)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """What is compared with what. Commits are resolved once: what moves a branch meanwhile changes nothing."""

    root: Path
    """The top folder of the repository."""
    git: Git
    """Git at `root`; it sees the head also when that is no commit."""
    base: Commit
    head: Commit
    """Of the working tree: the hash of a tree."""
    merge_base: str
    checked_out: bool
    """Whether the files of the head lie at `root` just as they are."""


async def find_root(git: Git) -> Path:
    """Give the top folder of the repository around a folder.

    Raises:
        NotARepository: There is none, or Git does not trust its owner.
    """
    answer = await git.ask("rev-parse", "--show-toplevel")
    if answer.code:
        why = answer.errors or "git gives no reason"
        message = (
            f"{str(git.folder)!r} is in no Git repository with files ({why}); run it inside one"
        )
        raise NotARepository(message)
    return Path(os.fsdecode(answer.output).removesuffix("\n"))


async def find_revisions(
    git: Git, *, base: str | None, head: str, scratch: Path, env: Mapping[str, str]
) -> Revisions:
    """Resolve what was named.

    Args:
        git: Anywhere in the repository.
        base: A branch, tag or commit; None: the target that CI names, else the usual main branch.
        head: The same; or `WORKING_TREE`.
        scratch: A private folder that lives as long as what is given.
        env: Where CI names its target.

    Raises:
        NotARepository: There is none.
        RevisionUnknown: A name means no commit, or the two have nothing in common within this clone.
    """
    root = await find_root(git)
    git = git.at(root)
    from_commit = await _base(git, base, env, head=head)
    if head == WORKING_TREE:
        git, to_commit = await _snapshot(git, scratch)
        meeting = "HEAD"
    else:
        to_commit = await _commit(git, head)
        meeting = to_commit.sha
    merge_base = await _merge_base(git, from_commit, meeting, named=to_commit.ref)
    return Revisions(
        root=root,
        git=git,
        base=from_commit,
        head=to_commit,
        merge_base=merge_base,
        checked_out=head == WORKING_TREE or await _is_checked_out(git, to_commit.sha),
    )


async def _base(git: Git, base: str | None, env: Mapping[str, str], *, head: str) -> Commit:
    if base is not None:
        return await _commit(git, base)
    if head == WORKING_TREE:
        return await _commit(git, "HEAD")
    tried = [*_targets(env), *USUAL_BASES]
    for ref in tried:
        if (sha := await _sha(git, ref)) is not None:
            return Commit(ref=ref, sha=sha)
    message = f"there is no branch to compare with ({', '.join(tried)}); name one with --base"
    raise RevisionUnknown(message)


def _targets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Name what CI would merge into."""
    github = env.get("GITHUB_BASE_REF")
    gitlab = env.get("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    branch = env.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    named = (github and f"origin/{github}", gitlab, branch and f"origin/{branch}")
    return tuple(name for name in named if name)


async def _commit(git: Git, ref: str) -> Commit:
    sha = await _sha(git, ref)
    if sha is not None:
        return Commit(ref=ref, sha=sha)
    known = await _sha(git, f"origin/{ref}")
    if known is not None and not ref.startswith("origin/"):
        return Commit(ref=f"origin/{ref}", sha=known)
    advice = DEEPEN if await is_shallow(git) else "check its name, or fetch it first"
    message = f"{ref!r} is no commit of this repository; {advice}"
    raise RevisionUnknown(message)


async def _sha(git: Git, ref: str) -> str | None:
    # An option, a path or a range is no name of a commit.
    if not ref or ref.startswith("-") or ":" in ref or ".." in ref or "\0" in ref:
        return None
    answer = await git.ask(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
    )
    return None if answer.code else answer.output.decode().strip()


async def is_shallow(git: Git) -> bool:
    """Tell whether the clone lacks older commits."""
    answer = await git.ask("rev-parse", "--is-shallow-repository")
    return answer.output.strip() == b"true"


async def _merge_base(git: Git, base: Commit, head: str, *, named: str) -> str:
    answer = await git.ask("merge-base", base.sha, head)
    if answer.code == 0:
        return answer.output.decode().split()[0]
    if await is_shallow(git):
        message = f"this clone does not show where {base.ref!r} and {named!r} part; {DEEPEN}"
    else:
        message = f"{base.ref!r} and {named!r} have no commit in common; name another --base"
    raise RevisionUnknown(message)


async def _is_checked_out(git: Git, sha: str) -> bool:
    if await _sha(git, "HEAD") != sha:
        return False
    status = await git.ask(
        "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"
    )
    return status.code == 0 and not status.output


async def _snapshot(git: Git, scratch: Path) -> tuple[Git, Commit]:
    """Write what lies on the disk as a tree, into a store of objects of its own: the repository gets nothing."""
    there = Path(await git.text("rev-parse", "--git-path", "objects"))
    index = Path(await git.text("rev-parse", "--git-path", "index"))
    objects = scratch / "objects"
    await anyio.to_thread.run_sync(_prepare, git.folder / index, scratch / "index", objects)
    ours = git.knowing(
        GIT_INDEX_FILE=str(scratch / "index"),
        GIT_OBJECT_DIRECTORY=str(objects),
        GIT_ALTERNATE_OBJECT_DIRECTORIES=str(git.folder / there),
    )
    _ = await ours.ask("add", "--all", "--ignore-errors")
    try:
        tree = await ours.text("write-tree")
    except GitFailed as error:
        message = f"what lies in {str(git.folder)!r} cannot be looked at as a whole ({error}); end the merge first"
        raise RevisionUnknown(message) from error
    seeing = replace(ours, extra={k: v for k, v in ours.extra.items() if k != "GIT_INDEX_FILE"})
    return seeing, Commit(ref=WORKING_TREE, sha=tree)


def _prepare(index: Path, copy: Path, objects: Path) -> None:
    objects.mkdir()
    if index.exists():  # a repository without a commit has none
        # With its time: by that Git tells which files may have changed since it was written.
        _ = shutil.copy2(index, copy)
