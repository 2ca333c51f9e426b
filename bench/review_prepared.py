"""What it costs to make a large change ready for a review, beside `git diff` alone, started and its output read."""

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from agent_core.workspace.git.client import open_git, scratch_folder
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Workshop
from tiller_server.review.git.change_set import prepare_change
from tiller_server.review.git.file_filter import ReviewFileFilter
from tiller_server.review.git.revisions import find_revisions
from tiller_server.review.model.chunks import divide

FILES = 2_000
LINES = 200
TIMES = Bar(of="ratio", at_most=2.0)
DIFF = ("git", "diff", "--find-renames", "--no-color", "--no-ext-diff", "main...feature")


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Change two thousand files, fifty of them renamed."""
    async with shop.lab() as lab:
        root = Path(lab.workspace)
        await asyncio.to_thread(_planted, root, lab.env)

        async def ours() -> float:
            return await _took_ms(lambda: _prepared(root, lab.env))

        async def alone() -> float:
            return await _took_ms(lambda: asyncio.to_thread(_diff, root, lab.env))

        await ours()
        await alone()
        prepared, diffed = await alternate(max(plan.rounds * 3, 7), ours, alone)
    return [
        Row(
            what=f"a change of {FILES:,} files ready for review",
            unit="ms",
            ours=tuple(prepared),
            peer=Peer(name="git diff alone", samples=tuple(diffed)),
            bar=TIMES,
        )
    ]


async def _prepared(root: Path, env: Mapping[str, str]) -> None:
    """Do all that comes before the model is asked: revisions, diff, attributes, hunks, parts."""
    async with scratch_folder() as scratch:
        git = await open_git(root, env=env, scratch=scratch)
        revisions = await find_revisions(git, base="main", head="feature", env=env)
        change = await prepare_change(revisions, scope=ReviewFileFilter(), scratch=scratch)
        parts = divide(change.files)
        first = parts[0].text()
    if len(change.files) < FILES or "@@ from line" not in first:
        message = f"{len(change.files)} files in {len(parts)} parts"
        raise RuntimeError(message)


async def _took_ms(act: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic()
    await act()
    return (time.monotonic() - began) * 1000


def _diff(root: Path, env: Mapping[str, str]) -> None:
    _ = subprocess.run(DIFF, cwd=root, env=dict(env), capture_output=True, check=True)  # noqa: S603 - Git


def _planted(root: Path, env: Mapping[str, str]) -> None:
    """Make the two branches."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=B", "-c", "user.email=b@example.invalid")
        _ = subprocess.run(  # noqa: S603 - Git
            ("git", *who, *arguments),  # noqa: S607 - as above
            cwd=root,
            env=dict(env),
            capture_output=True,
            check=True,
        )

    def write(number: int, changed: str, *, name: str = "file") -> None:
        path = root / f"pkg{number // 100:02}" / f"{name}{number}.py"
        path.parent.mkdir(exist_ok=True)
        lines = [f"value_{number}_{line} = {line}\n" for line in range(LINES)]
        if changed:
            for line in (10, LINES // 2, LINES - 10):
                lines[line] = f"value_{number}_{line} = {changed}\n"
        _ = path.write_text("".join(lines), "utf-8")

    git("init", "--quiet", "--initial-branch=main")
    _ = (root / ".gitattributes").write_text("*.lock linguist-generated\n", "utf-8")
    for number in range(FILES):
        write(number, "")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Begin")
    git("checkout", "--quiet", "-b", "feature")
    for number in range(FILES):
        renamed = number % 40 == 0
        if renamed:
            (root / f"pkg{number // 100:02}" / f"file{number}.py").unlink()
        write(number, "None", name="moved" if renamed else "file")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Change")


BENCHMARK = Benchmark(name="review", title="A large change made ready", run=measure)
