"""Repairs what a review found, and puts it onto a branch or into a patch."""

import argparse
import os
from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly import SessionRequest
from agent_core.events import Budgets
from agent_core.workspace.git.client import Git, opened_git
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import complain
from tiller_server.cli.review.files import check_folders
from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings.result import Review
from tiller_server.review.git.branches import check_branch, create_branch
from tiller_server.review.git.revisions import sha_of
from tiller_server.review.repair import FixOrder, RepairResult, repair

PATCH: Final = "tiller-fix.patch"
WHO: Final = ("Tiller", "tiller@localhost")


async def fix(made: Review, options: argparse.Namespace, environment: Environment) -> None:
    """Repair, and say on standard error what came of it.

    Raises:
        TillerError: Nothing could be tried, or what came of it could not be kept.
    """
    workspace = Path(await anyio.Path(options.workspace).resolve())
    request = SessionRequest(
        workspace=workspace,
        trusted=options.trust,
        env=environment.variables,
        model=options.model,
        store="memory" if options.no_session else "files",
    )
    budgets = Budgets(
        usd=_left(options.budget_usd, made.header.cost_usd),
        tokens=None
        if options.max_tokens is None
        else max(0, options.max_tokens - made.header.tokens),
        turns=options.max_turns,
        minutes=options.max_minutes,
    )
    order = FixOrder(by=options.fix_with, test=options.test, budgets=budgets)
    fixed = await repair(made, order, request)
    for finding, why in fixed.left:
        complain("review", f"not repaired: {finding.path}:{finding.line} {finding.title}: {why}")
    if not fixed.patch:
        complain("review", "nothing was repaired")
        return
    if options.fix == "patch":
        where = await _as_patch(fixed, Path(options.fix_to or PATCH))
    else:
        async with opened_git(workspace, env=environment.variables) as git:
            where = await _as_branch(fixed, made, git, options.fix_to)
    judged = "the tests pass with it" if fixed.judged else "no test has judged it"
    complain("review", f"{len(fixed.kept)} of {len(made.findings)} repaired, {where}; {judged}")


async def check_target(options: argparse.Namespace, environment: Environment) -> None:
    """Check that a repair can be kept where it is asked for, before a model is paid.

    Raises:
        TillerError: There is no repository, no such head, or no room for the branch or the patch.
    """
    if options.fix == "patch":
        await check_folders([Path(options.fix_to or PATCH)])
        return
    workspace = Path(await anyio.Path(options.workspace).resolve())
    async with opened_git(workspace, env=environment.variables) as git:
        name = options.fix_to or branch_of(await sha_of(git, options.head))
        _ = await check_branch(git, name)


def branch_of(sha: str) -> str:
    """Return the name of the branch for repairs of a commit."""
    return f"tiller/fix-{sha[:12]}"


def _left(most: float | None, used: float | None) -> float | None:
    return None if most is None else max(0.0, most - (used or 0.0))


async def _as_patch(fixed: RepairResult, path: Path) -> str:
    try:
        _ = await anyio.Path(path).write_bytes(fixed.patch)
    except OSError as error:
        message = f"the patch {str(path)!r} cannot be written ({error.strerror})"
        raise ReviewFileInvalid(message) from error
    return f"in {path} (git apply {path})"


async def _as_branch(fixed: RepairResult, made: Review, git: Git, named: str | None) -> str:
    head = made.header.head.sha
    name = named or branch_of(head)
    titles = "\n".join(f"- {one.path}: {one.title}" for one in fixed.kept)
    person, address = WHO
    ours = git.storing().knowing(
        GIT_AUTHOR_NAME=person,
        GIT_AUTHOR_EMAIL=address,
        GIT_COMMITTER_NAME=person,
        GIT_COMMITTER_EMAIL=address,
    )
    text = f"Repair what a review found\n\n{titles}\n".encode("utf-8", "replace")
    said = await ours.output("commit-tree", fixed.tree, "-p", head, stdin=text)
    commit = os.fsdecode(said).strip()
    await create_branch(git, name, commit)
    return f"on the branch {name}"
