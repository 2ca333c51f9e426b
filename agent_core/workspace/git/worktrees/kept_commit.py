"""Keeps everything that a worktree holds in one commit below `refs/tiller/kept/`, before anything is removed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git, GitFailed
from agent_core.workspace.git.repository import WORKTREES, read_part
from agent_core.workspace.git.shadow import OWN_REFS
from agent_core.workspace.git.worktrees.trees import Snapshot
from agent_core.workspace.git.worktrees.values import BRANCHES, KEPT_REFS

PSEUDO_REFS: Final = (
    *(
        "ORIG_HEAD",
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "REBASE_HEAD",
        "MERGE_AUTOSTASH",
    ),
    *(
        f"{folder}/{name}"
        for folder in ("rebase-merge", "rebase-apply")
        for name in ("orig-head", "autostash")
    ),
)
"""Files of a worktree that name commits."""
REF_FORMAT: Final = "%(objecttype)%(*objecttype) %(objectname) %(refname)"
MOST_LOG_BYTES: Final = 67_108_864
AUTHOR: Final[Mapping[str, str]] = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Tiller"), ("EMAIL", "tiller@localhost"))
}
_HASH: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Tips(Value, frozen=True, kw_only=True):
    """Where the commits of a worktree end."""

    head: str | None
    """None: no commit yet, as on a new branch without a parent."""
    own: Sequence[str]
    """Commits that no ref but its own reaches, without those that another one of them reaches."""
    own_of_head: int
    """How many commits of HEAD no ref but its own reaches."""
    named: Sequence[str]
    """All that its files name, by hash."""


async def find_tips(git: Git, *, id_: str) -> Tips:
    """Return where the commits of a worktree end: its HEAD, its own refs, and all that its reflogs name.

    Args:
        git: With a shadow of the worktree's repository.
        id_: The id of the worktree, whose branch does not count as a ref that is there anyway.
    """
    answer = await git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    head = None if answer.code else answer.output.decode().strip()
    named = await to_thread.run_sync(lambda: list(_named(git, id_)))
    refs = dict(_refs(await git.output("for-each-ref", f"--format={REF_FORMAT}")))
    branch = BRANCHES + id_
    own_refs = {name: value for name, value in refs.items() if _is_own(name, branch)}
    commits = await _commits(git, [*filter(None, [head]), *own_refs.values(), *named])
    others = [f"^{value}" for name, value in refs.items() if name not in own_refs]
    own = await _ends(git, commits, others)
    count = 0
    if head is not None:
        # A commit that is checked out elsewhere without a branch, as in CI, is not the worktree's own.
        heads = await to_thread.run_sync(lambda: list(_other_heads(git)))
        everywhere = [*others, *(f"^{one}" for one in await _commits(git, heads))]
        counted = await git.output(
            "rev-list", "--count", "--stdin", stdin=_lines([head, *everywhere])
        )
        count = int(counted)
    return Tips(head=head, own=own, own_of_head=count, named=named)


async def keep(git: Git, snapshot: Snapshot, tips: Tips, *, id_: str) -> str:
    """Make a ref to everything that a worktree holds, and return its commit.

    An earlier one of the same id stays reachable. HEAD and the index of the worktree do not change.

    Args:
        git: With a shadow of the worktree's repository, storing objects in the repository itself.
        snapshot: The content of the folder.
        tips: As `find_tips` returned them.
        id_: The id of the worktree.

    Raises:
        GitFailed: It could not be kept.
    """
    ref = KEPT_REFS + id_
    earlier = await git.ask("rev-parse", "--verify", "--quiet", ref)
    old = "" if earlier.code else earlier.output.decode().strip()
    head_tree = None if tips.head is None else await git.text("rev-parse", f"{tips.head}^{{tree}}")
    parents = [*filter(None, [tips.head])]
    if snapshot.index not in {head_tree, snapshot.tree}:
        parents.append(await _commit(git, snapshot.index, parents, f"Index of worktree {id_}"))
    parents += [one for one in tips.own if one not in parents]
    if old and not await _reaches(git, parents, old):
        parents.append(old)
    if len(parents) == 1 and snapshot.tree == head_tree:
        commit = parents[0]
    else:
        commit = await _commit(git, snapshot.tree, parents, f"Content of worktree {id_}")
    answer = await git.ask_in_place("update-ref", ref, commit, old or "0" * len(commit))
    if answer.code:
        message = f"the content of the worktree {id_!r} could not be kept as {ref} ({answer.errors}); nothing was removed"
        raise GitFailed(message)
    return commit


async def _commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    flags = (word for parent in dict.fromkeys(parents) for word in ("-p", parent))
    return await git.knowing(**AUTHOR).text("commit-tree", tree, *flags, "-m", message)


async def _reaches(git: Git, tips: Sequence[str], commit: str) -> bool:
    rows = _lines([commit, *(f"^{tip}" for tip in tips)])
    return not await git.output("rev-list", "--max-count=1", "--stdin", stdin=rows)


async def _commits(git: Git, names: Sequence[str]) -> Sequence[str]:
    """Return those of some hashes that are commits, or tags of one, as commits."""
    asked = _lines([f"{name}^{{commit}}" for name in dict.fromkeys(names)])
    output = await git.output("cat-file", "--batch-check", stdin=asked)
    rows = (row.split(" ") for row in output.decode("utf-8", "replace").splitlines())
    return list(dict.fromkeys(row[0] for row in rows if len(row) == 3 and row[1] == "commit"))  # noqa: PLR2004 - hash, type, size


async def _ends(git: Git, commits: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """Return those commits that the others do not reach, without those that have one of them as a descendant."""
    if not commits:
        return []
    rows = _lines([*commits, *others])
    output = await git.output("rev-list", "--parents", "--stdin", stdin=rows)
    graph = [row.split(" ") for row in output.decode().splitlines()]
    inner = {parent for _, *parents in graph for parent in parents}
    return [commit for commit, *_ in graph if commit not in inner]


def _refs(output: bytes) -> Iterator[tuple[str, str]]:
    for row in output.decode("utf-8", "surrogateescape").splitlines():
        kind, value, name = row.split(" ", 2)
        if kind in {"commit", "tagcommit"}:
            yield name, value


def _is_own(name: str, branch: str) -> bool:
    return name == branch or name.startswith(OWN_REFS)


def _named(git: Git, id_: str) -> Iterator[str]:
    """Yield the hashes in the files of a worktree that shadows do not show to git. Blocking."""
    git_dir, common = git.repository.git_dir, git.repository.common_dir
    places = [git_dir / name for name in PSEUDO_REFS]
    logs = [git_dir / "logs" / "HEAD", common / "logs" / (BRANCHES + id_)]
    for path in (*places, *logs):
        for line in _content(path).splitlines():
            hashes = line.split(b" ", 2)[:2]
            for one in hashes:
                if _HASH.fullmatch(one) and one.strip(b"0"):
                    yield one.decode()


def _other_heads(git: Git) -> Iterator[str]:
    """Yield the commits that other worktrees of the repository have checked out without a branch. Blocking."""
    common = git.repository.common_dir
    for folder in (common, *(common / WORKTREES).glob("*")):
        if folder != git.repository.git_dir:
            head = _content(folder / "HEAD").strip()
            if _HASH.fullmatch(head):
                yield head.decode()


def _content(path: Path) -> bytes:
    try:
        return read_part(path, most_bytes=MOST_LOG_BYTES)
    except OSError:
        return b""


def _lines(rows: Sequence[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()
