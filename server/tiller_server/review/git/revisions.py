"""Finds the two commits that a review compares."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git, GitFailed
from tiller_server.review.errors import RevisionUnknown
from tiller_server.review.findings.result import Commit

WORKING_TREE: Final = "working tree"
"""The name of a head that is what lies on the disk, committed or not."""
GITLINK: Final = b"160000 "
"""How an entry of the index begins that is a commit of another repository."""
USUAL_BASES: Final = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
DEEPEN: Final = (
    "the clone is shallow: fetch the whole history (fetch-depth: 0 for actions/checkout, GIT_DEPTH: 0 in GitLab, "
    "git fetch --unshallow by hand)"
)


class Revisions(Value, frozen=True, kw_only=True):
    """Base and head of a comparison. Commits are resolved once: a branch that moves later changes nothing."""

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


async def find_revisions(
    git: Git, *, base: str | None, head: str, env: Mapping[str, str]
) -> Revisions:
    """Resolve what was named.

    Args:
        git: At the top of the repository.
        base: A branch, tag or commit; None: the target that CI names, else the usual main branch.
        head: The same; or `WORKING_TREE`.
        env: Where CI names its target.

    Raises:
        RevisionUnknown: A name means no commit, or the two have nothing in common within this clone.
    """
    from_commit = await _base(git, base, env, head=head)
    if head == WORKING_TREE:
        to_commit = await _snapshot(git)
        meeting = "HEAD"
    else:
        to_commit = await _commit(git, head)
        meeting = to_commit.sha
    merge_base = await _merge_base(git, from_commit, meeting, named=to_commit.ref)
    return Revisions(
        root=git.folder,
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


async def sha_of(git: Git, ref: str) -> str:
    """Return the hash of the commit of a name.

    Raises:
        RevisionUnknown: There is none.
    """
    return (await _commit(git, ref)).sha


async def _commit(git: Git, ref: str) -> Commit:
    sha = await _sha(git, ref)
    if sha is not None:
        return Commit(ref=ref, sha=sha)
    remote_sha = await _sha(git, f"origin/{ref}")
    if remote_sha is not None and not ref.startswith("origin/"):
        return Commit(ref=f"origin/{ref}", sha=remote_sha)
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
    """Return whether the clone lacks older commits."""
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


async def _snapshot(git: Git) -> Commit:
    """Write what lies on the disk as a tree, into the shadow: the repository gets nothing."""
    try:
        tree = await written_tree(git)
    except GitFailed as error:
        message = f"what lies in {str(git.folder)!r} cannot be looked at as a whole ({error}); end the merge first"
        raise RevisionUnknown(message) from error
    return Commit(ref=WORKING_TREE, sha=tree)


async def written_tree(git: Git) -> str:
    """Write what lies in the work tree, without what Git ignores, as a tree; returns its hash.

    Of a submodule only the commit counts that is checked out in it. `git add` would run `git status` there, which obeys
    the submodule's own configuration; `git update-index` reads no more than its HEAD.

    Args:
        git: With the index that knows the work tree, which is brought up to date.

    Raises:
        GitFailed: It cannot be written as a whole, as during a merge.
    """
    submodules = await _submodules(git)
    paths = b"".join([b".\0", *(b":(exclude,literal)%s\0" % path for path in submodules)])
    _ = await git.knowing(GIT_LITERAL_PATHSPECS="0").ask(
        "add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul",
        stdin=paths,
    )  # fmt: skip
    if submodules:
        listed = b"".join(path + b"\0" for path in submodules)
        _ = await git.ask("update-index", "-z", "--remove", "--stdin", stdin=listed)
    return await git.text("write-tree")


async def _submodules(git: Git) -> list[bytes]:
    listed = await git.output("ls-files", "-z", "--stage")
    rows = (row.partition(b"\t") for row in listed.split(b"\0"))
    return list(dict.fromkeys(path for about, _, path in rows if about.startswith(GITLINK)))
