"""Repairs what a review found, and puts it onto a branch or into a patch."""

import argparse
import os
from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly import SessionRequest
from agent_core.events import Budgets
from agent_core.kernel.errors import UsageError
from server.cli.environment import Environment
from server.cli.exits import complain
from server.review.errors import ReviewFileInvalid
from server.review.findings import Review
from server.review.fixing import Fixed, FixOrder, repair
from server.review.git import Git

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
    git = Git(folder=workspace, env=environment.variables)
    if options.fix == "patch":
        where = await _as_patch(fixed, Path(options.fix_to or PATCH))
    else:
        where = await _as_branch(fixed, made, git, options.fix_to)
    judged = "the tests pass with it" if fixed.judged else "no test has judged it"
    complain("review", f"{len(fixed.kept)} of {len(made.findings)} repaired, {where}; {judged}")


def _left(most: float | None, used: float | None) -> float | None:
    return None if most is None else max(0.0, most - (used or 0.0))


async def _as_patch(fixed: Fixed, path: Path) -> str:
    try:
        _ = await anyio.Path(path).write_bytes(fixed.patch)
    except OSError as error:
        message = f"the patch {str(path)!r} cannot be written ({error.strerror})"
        raise ReviewFileInvalid(message) from error
    return f"in {path} (git apply {path})"


async def _as_branch(fixed: Fixed, made: Review, git: Git, named: str | None) -> str:
    head = made.header.head.sha
    name = named or f"tiller/fix-{head[:12]}"
    ref = f"refs/heads/{name}"
    if (await git.ask("check-ref-format", ref)).code:
        message = f"{name!r} is no name of a branch; give another with --fix-to"
        raise UsageError(message)
    titles = "\n".join(f"- {one.path}: {one.title}" for one in fixed.kept)
    person, address = WHO
    ours = git.knowing(
        GIT_AUTHOR_NAME=person,
        GIT_AUTHOR_EMAIL=address,
        GIT_COMMITTER_NAME=person,
        GIT_COMMITTER_EMAIL=address,
    )
    text = f"Repair what a review found\n\n{titles}\n".encode("utf-8", "replace")
    said = await ours.output("commit-tree", fixed.tree, "-p", head, stdin=text)
    commit = os.fsdecode(said).strip()
    # The empty old value means: only when there is no such branch.
    if (await git.ask("update-ref", ref, commit, "")).code:
        message = (
            f"the branch {name!r} is there already, and stays as it is; name another with --fix-to"
        )
        raise UsageError(message)
    return f"on the branch {name}"
