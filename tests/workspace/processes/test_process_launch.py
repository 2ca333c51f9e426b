"""A contained command runs in a process that was started ahead, where that is what the command is to have."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from anyio import to_thread

from agent_core.workspace import ProcessEnd
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.processes.namespace import REPORT_S
from agent_core.workspace.sandbox import Sandbox
from agent_core.workspace.sandbox.backends.keeper import MOST_ORDER_BYTES
from tests.support.workspace.contained import contained
from tests.support.workspace.mounts import unchanged_mounts
from tests.support.workspace.processes import waiting_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containment is for Linux")
GRACE_S = 0.15


class World:
    """A workspace and its containment."""

    def __init__(self, root: Path, home: Path, sandbox: Sandbox) -> None:
        self.root = root
        self.home = home
        self.sandbox = sandbox
        self.mark = f"mark-{uuid4().hex}"
        self.processes = DiskProcesses(sandbox=sandbox)
        self._waiting: set[int] = set()

    async def run(
        self,
        *argv: str,
        cwd: Path | None = None,
        needs: frozenset[Needs] = frozenset(),
        stdin: bytes = b"",
        **env: str,
    ) -> tuple[str, ProcessEnd, bool]:
        """Run a command; returns its output, its end, and whether it ran in a process that waited."""
        variables = {
            "PATH": os.defpath, "HOME": str(self.home), "GIT_AUTHOR_NAME": self.mark, **env
        }  # fmt: skip
        process = await self.processes.start(
            argv, cwd=cwd or self.root, env=variables, needs=needs, stdin=stdin
        )
        waited = process.pid in self._waiting
        with anyio.fail_after(15):
            end = await process.wait()
        await process.end(grace_s=GRACE_S)
        output = b""
        while chunk := await process.read():
            output += chunk
        return os.fsdecode(output), end, waited

    async def bash(self, command: str) -> tuple[str, int | None, bool]:
        output, end, waited = await self.run("bash", "-c", command)
        return output, end.exit_code, waited

    async def ready(self) -> set[int]:
        """Wait until a process waits for its command."""
        self._waiting = await to_thread.run_sync(lambda: waiting_with(self.mark))
        return self._waiting


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    top = tmp_path.resolve()
    root, home = top / "home" / "project", top / "home"
    (root / "src").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = before\n")
    (root / "AGENTS.md").write_text("before\n")
    env = {"PATH": os.defpath, "HOME": str(home)}
    subprocess.run(["git", "init", "-q"], cwd=root, env=env, check=True)
    with unchanged_mounts(), contained(root, env=env) as sandbox:
        yield World(root, home, sandbox)


async def test_the_second_command_runs_in_what_was_started_during_the_first(world: World) -> None:
    assert await world.bash("echo 1") == ("1\n", 0, False)
    for number in range(2, 5):
        await world.ready()
        assert await world.bash(f"echo {number}; exit {number}") == (f"{number}\n", number, True)


WORDS = (
    "",
    "a b",
    "'",
    '"',
    "$HOME",
    "`id`",
    "\\",
    "line\nline\r",
    "ä",
    "\udcff",
    "!x",
    "*",
    "-n",
    "k=",
)


async def test_words_arrive_as_they_are(world: World) -> None:
    argv = ("bash", "-c", 'printf "%s\\0" "$@"', "name", *WORDS)
    first, _, _ = await world.run(*argv)
    await world.ready()
    second, _, waited = await world.run(*argv)
    assert waited
    assert second == first == "".join(f"{word}\0" for word in WORDS)


async def test_the_environment_is_that_of_a_command_that_nothing_waited_for(world: World) -> None:
    first, _, _ = await world.run("env")
    await world.ready()
    second, _, waited = await world.run("env")
    assert waited

    def plain(text: str) -> set[str]:
        return {line for line in text.splitlines() if not line.startswith("TILLER_PROCESS_ID=")}

    assert plain(first) == plain(second)


async def test_the_folder_is_the_one_that_has_the_name_now(world: World) -> None:
    folder = world.root / "src"
    await world.run("true", cwd=folder)
    await world.ready()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "new").touch()
    output, _, waited = await world.run("ls", cwd=folder)
    assert (output, waited) == ("new\n", True)


def _replace(path: Path, text: str) -> None:
    new = path.with_name("new-file")
    new.write_text(text)
    new.replace(path)


def _exchange_repository(world: World) -> None:
    git = world.root / ".git"
    git.rename(world.root / "old")
    shutil.copytree(world.root / "old", git)


CHANGES: Mapping[str, tuple[Callable[[World], object], str, str]] = {
    "a protected file": (
        lambda world: (world.root / "CLAUDE.md").write_text("x\n"),
        "echo bad > CLAUDE.md",
        "Read-only file system",
    ),
    "a protected file that was replaced": (
        lambda world: _replace(world.root / "AGENTS.md", "after\n"),
        "cat AGENTS.md; echo bad > AGENTS.md",
        "after\nbash: line 1: AGENTS.md: Read-only file system",
    ),
    "a file of secrets": (
        lambda world: (world.root / ".env").write_text("KEY=hunter2\n"),
        "cat .env; echo end",
        "end",
    ),
    "a repository": (
        lambda world: subprocess.run(["git", "init", "-q", "src"], cwd=world.root, check=True),
        "echo bad > src/.git/config",
        "Read-only file system",
    ),
    "a repository that was replaced": (
        _exchange_repository,
        "echo bad > .git/config",
        "Read-only file system",
    ),
    "a file of the home that was replaced": (
        lambda world: _replace(world.home / ".gitconfig", "[user]\n\tname = after\n"),
        "git config user.name",
        "after",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_has_changed_holds_for_the_next_command(world: World, change: str) -> None:
    make, command, said = CHANGES[change]
    await world.bash("true")
    await world.ready()
    await to_thread.run_sync(make, world)
    output, _, waited = await world.bash(command)
    assert said in output
    assert not waited
    # And another one waits for the command after it.
    await world.ready()
    assert await world.bash("echo again") == ("again\n", 0, True)


async def test_a_command_that_differs_gets_a_process_of_its_own(world: World) -> None:
    await world.bash("true")
    await world.ready()
    output, _, waited = await world.run("cat", stdin=b"input")
    assert (output, waited) == ("input", False)
    output, _, waited = await world.run("bash", "-c", f": {'x' * MOST_ORDER_BYTES}; echo long")
    assert (output, waited) == ("long\n", False)
    _, _, waited = await world.run("true", needs=frozenset({"network"}))
    assert not waited
    # What waited served none of them, and still does.
    assert await world.bash("echo same") == ("same\n", 0, True)
    await world.ready()
    output, _, waited = await world.run("bash", "-c", "pwd", cwd=world.root / "src")
    assert (output, waited) == (f"{world.root}/src\n", False)
    await world.ready()
    output, _, waited = await world.run("bash", "-c", "echo $LANG", LANG="C")
    assert (output, waited) == ("C\n", False)


async def test_what_waited_and_was_killed_meanwhile_harms_no_command(world: World) -> None:
    await world.bash("true")
    for pid in await world.ready():
        # The end of one of them may be the end of the others.
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    # A process dies some time after it was killed; until then it is as the next command needs it.
    assert await to_thread.run_sync(lambda: waiting_with(world.mark, count=0)) == set()
    assert await world.bash("echo all the same") == ("all the same\n", 0, False)


async def test_others_that_share_the_containment_start_nothing_ahead(world: World) -> None:
    world.processes = DiskProcesses(sandbox=world.sandbox, ahead="none")
    for _ in range(2):
        assert await world.bash("echo x") == ("x\n", 0, False)
    # The thread that would start it has nothing left to do, as it ran both.
    assert await to_thread.run_sync(lambda: waiting_with(world.mark, count=0)) == set()


async def test_nothing_waits_once_the_containment_is_closed(world: World) -> None:
    await world.bash("true")
    await to_thread.run_sync(world.sandbox.close)
    assert await to_thread.run_sync(lambda: waiting_with(world.mark, count=0)) == set()


async def test_a_command_is_ended_at_once_before_it_has_begun(world: World) -> None:
    """Between the start of its namespace and its own there is no process of it to signal."""
    took_s: list[float] = []
    for _ in range(20):
        process = await world.processes.start(
            ("sleep", "600"), cwd=world.root, env={"PATH": os.defpath}, needs=frozenset(), stdin=b""
        )
        begun_s = time.monotonic()
        report = await process.end(grace_s=GRACE_S)
        took_s.append(time.monotonic() - begun_s)
        assert report.survivors == ()
    assert max(took_s) < REPORT_S, took_s
