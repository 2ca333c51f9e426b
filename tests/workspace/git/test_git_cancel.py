"""Commands of git that are cancelled leave no process and no open file, whatever the moment."""

import os

import anyio
import psutil
import pytest

from agent_core.workspace.git.client import opened_git
from tests.support.harness.shared import ROOT
from tests.support.workspace.processes import descendants

STEPS = 40
MOST_MS = 8


async def test_a_cancelled_command_leaves_no_process_and_no_open_file() -> None:
    async with opened_git(ROOT, env={"PATH": os.defpath}) as git:
        assert (await git.text("rev-parse", "--is-inside-work-tree")) == "true"
        before = descendants(os.getpid()), psutil.Process().num_fds()
        for step in range(STEPS):
            with anyio.move_on_after(MOST_MS / 1000 * step / STEPS):
                _ = await git.output("hash-object", "--stdin", stdin=b"x" * 200_000)
            assert (descendants(os.getpid()), psutil.Process().num_fds()) == before


@pytest.mark.parametrize("stdin", [b"", b"x" * 1_000_000], ids=["empty", "large"])
async def test_what_git_does_not_read_hinders_nothing(stdin: bytes) -> None:
    async with opened_git(ROOT, env={"PATH": os.defpath}) as git:
        assert (await git.ask("--version", stdin=stdin)).code == 0
