"""Repairs what a review found, in a copy of the head: suggestions, or an agent, with the tests as the judge."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import Budgets
from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from agent_core.workspace.git.client import Git, open_git, scratch_folder
from tiller_server.review.errors import RevisionUnknown
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.findings.suggestions import replaced_by
from tiller_server.review.git.head_files import write_tree
from tiller_server.review.git.revisions import written_tree
from tiller_server.review.model.prompts import repair_prompt

FAILS_ANYWAY: Final = "the tests fail with and without it"


class FixOrder(Value, frozen=True, kw_only=True):
    """How to repair."""

    by: Literal["suggestions", "agent"] = "suggestions"
    test: str | None = None
    """Shell command; a repair that makes it fail is discarded."""
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    """Of the agent."""


class RepairResult(Value, frozen=True, kw_only=True):
    """Result of a repair."""

    tree: str
    """The files of the head with the repairs, as a tree of Git."""
    patch: bytes
    """For `git apply`; empty when nothing changed."""
    kept: tuple[Finding, ...]
    left: tuple[tuple[Finding, str], ...]
    """Findings that were not repaired, each with the reason."""
    judged: bool
    """Whether the tests passed with it."""


class RepairWorkspace(Struct, kw_only=True):
    """The copy in which is worked."""

    git: Git
    """With an index of its own that knows the copy."""
    folder: Path
    head: str

    async def reset(self) -> None:
        """Reset the copy to the head; files that tests left behind are removed, except ignored ones."""
        await self.become(self.head)

    async def become(self, tree: str) -> None:
        """Make the copy a commit or tree."""
        _ = await self.git.output("read-tree", "--reset", "-u", tree)
        _ = await self.git.output("clean", "-ffdq")

    async def tree(self) -> str:
        """Return the files of the copy as a Git tree; ignored files are not in it."""
        return await written_tree(self.git)


async def repair(review: Review, order: FixOrder, request: SessionRequest) -> RepairResult:
    """Repair what can be repaired; the repository's files, index and branches stay as they are.

    Args:
        review: Of a commit of this repository.
        order: How to repair.
        request: How sessions are opened: commands run contained, as the tool `bash` does.

    Raises:
        UsageError: The commit is not there, or the agent cannot be asked.
        GitFailed: Git cannot do what was asked.
    """
    async with scratch_folder() as scratch:
        opened = await open_git(
            request.workspace, env=request.env, scratch=scratch, roots=request.added.trusted
        )
        # What comes of it must still be there when the shadow is gone.
        git = opened.storing()
        head = review.header.head.sha
        if (await git.ask("cat-file", "-e", f"{head}^{{commit}}")).code:
            message = f"{head[:12]} is no commit of this repository; fetch it, or review anew"
            raise RevisionUnknown(message)
        folder, index = scratch / "head", scratch / "index"
        await write_tree(git, head, folder=folder, index=index)
        scratch_git = git.at(folder).knowing(GIT_INDEX_FILE=str(index))
        bench = RepairWorkspace(git=scratch_git, folder=folder, head=head)
        inside = replace(
            request,
            session="new",
            workspace=folder,
            store="memory" if order.by == "suggestions" else request.store,
            settings={
                **request.settings,
                "request": {"permission": {"mode": "auto", "fallback": "rules"}},
            },
        )
        async with open_session(inside) as session:
            return await _repaired(review, order, bench, session)


async def _repaired(
    review: Review, order: FixOrder, bench: RepairWorkspace, session: AgentSession
) -> RepairResult:
    fine_before = order.test is None or await _passes(order.test, session)
    await bench.reset()
    wanted, left = _disjoint([one for one in review.findings if one.suggestion is not None])
    await _apply(bench.folder, wanted)
    tree = await bench.tree()
    if order.by == "agent":
        kept_tree = await _by_agent(review, order, bench, session, begun=tree)
        if kept_tree is not None:
            return await _fixed(bench, kept_tree, review.findings, (), judged=True)
        await bench.become(tree)
    if order.test is None:
        return await _fixed(bench, tree, wanted, left, judged=False)
    if wanted and await _passes(order.test, session):
        return await _fixed(bench, tree, wanted, left, judged=True)
    if not fine_before:
        none = tuple((one, FAILS_ANYWAY) for one in wanted)
        return await _fixed(bench, await _head_tree(bench), (), (*left, *none), judged=False)
    kept, refused = await _one_by_one(wanted, order.test, bench, session)
    await bench.reset()
    await _apply(bench.folder, kept)
    return await _fixed(bench, await bench.tree(), kept, (*left, *refused), judged=bool(kept))


async def _one_by_one(
    wanted: Sequence[Finding], test: str, bench: RepairWorkspace, session: AgentSession
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """Keep what passes beside what was kept before."""
    kept: list[Finding] = []
    refused: list[tuple[Finding, str]] = []
    for finding in wanted:
        await bench.reset()
        await _apply(bench.folder, [*kept, finding])
        if await _passes(test, session):
            kept.append(finding)
        else:
            refused.append((finding, "the tests fail with it"))
    return kept, refused


async def _by_agent(
    review: Review, order: FixOrder, bench: RepairWorkspace, session: AgentSession, *, begun: str
) -> str | None:
    """Run the agent on top of the suggestions; return the tree, None when nothing changed or the tests fail."""
    _ = session.info.configure(budgets=order.budgets)
    test = order.test or ""
    receipt = await session.prompt(repair_prompt(review.findings, test=test))
    if receipt.run is not None:
        _ = await session.wait(receipt.run)
    tree = await bench.tree()
    if tree == await _head_tree(bench) or not await _passes(test, session):
        return None
    return tree if tree != begun or review.findings else None


async def _passes(test: str, session: AgentSession) -> bool:
    ended = await session.execute_bash(test, exclude_from_context=True)
    return ended.exit_code == 0 and not ended.cancelled


async def _head_tree(bench: RepairWorkspace) -> str:
    return await bench.git.text("rev-parse", f"{bench.head}^{{tree}}")


async def _fixed(
    bench: RepairWorkspace,
    tree: str,
    kept: Sequence[Finding],
    left: Sequence[tuple[Finding, str]],
    *,
    judged: bool,
) -> RepairResult:
    patch = await bench.git.output(
        "diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", bench.head, tree
    )
    return RepairResult(tree=tree, patch=patch, kept=tuple(kept), left=tuple(left), judged=judged)


def _disjoint(
    findings: Sequence[Finding],
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """Part the findings into those whose suggestions go together, the gravest first, and those in their way."""
    kept: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    for finding in findings:
        other = next((one for one in kept if _overlap(one, finding)), None)
        if other is None:
            kept.append(finding)
        else:
            left.append((finding, f"its lines are those of {other.title!r}"))
    return kept, left


def _overlap(one: Finding, other: Finding) -> bool:
    a, b = one.suggestion, other.suggestion
    if a is None or b is None or one.path != other.path:
        return False
    return a.line <= b.end_line and b.line <= a.end_line


async def _apply(folder: Path, findings: Sequence[Finding]) -> None:
    await anyio.to_thread.run_sync(_apply_now, folder, findings)


def _apply_now(folder: Path, findings: Sequence[Finding]) -> None:
    for path in {finding.path for finding in findings}:
        file = folder / path
        if file.is_symlink():  # what is written there would land wherever it leads
            continue
        content = file.read_bytes()
        changed = with_suggestions(content, [one for one in findings if one.path == path])
        _ = file.write_bytes(changed)


def with_suggestions(content: bytes, findings: Sequence[Finding]) -> bytes:
    """Return a file with the suggestions of findings, which do not overlap; its ends of lines stay. Pure."""
    lines = content.split(b"\n")
    end = b"\r" if lines and lines[0].endswith(b"\r") else b""
    chosen = [one.suggestion for one in findings if one.suggestion is not None]
    for each in sorted(chosen, key=lambda one: one.line, reverse=True):
        new = [line.encode() + end for line in replaced_by(each)]
        lines[each.line - 1 : each.end_line] = new
    return b"\n".join(lines)
