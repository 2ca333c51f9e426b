"""The tool bash and processes: nothing waits, nothing hides, nothing is left running."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from typing_extensions import override

from agent_core.hooks import GoOn, Hook, ToolBlocked, ToolCalled, ToolCallOutcome
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcess, DiskProcesses
from tests.support.workspace.processes import processes_with
from tests.tools.conftest import WITH_AND_WITHOUT, Bench, details, words

pytestmark = WITH_AND_WITHOUT


@pytest.fixture
def mark(bench: Bench) -> str:
    """Mark the processes of the test, by a variable that commands get, so that it can be seen that none is left."""
    mark = f"mark-{uuid4().hex}"
    bench.workspace = replace(bench.workspace, env={**bench.workspace.env, "GIT_AUTHOR_NAME": mark})
    return mark


async def _bash(bench: Bench, command: str, **more):
    return await bench.run("bash", command=command, **more)


async def test_the_whole_tree_ends_with_the_time(bench: Bench, mark: str) -> None:
    await _bash(bench, 'bash -c "sleep 100 & sleep 100"', timeout=0.3)
    assert processes_with(mark) == set()


async def test_the_whole_group_ends_with_the_time(bench: Bench, mark: str) -> None:
    outcome = await _bash(bench, "sleep 100 & sleep 100 & wait", timeout=0.3)
    assert words(outcome).endswith("Command timed out after 0.3 seconds")
    assert processes_with(mark) == set()


async def test_a_broken_pipe_is_no_failure(bench: Bench) -> None:
    outcome = await _bash(bench, "yes | head -5")
    assert (outcome.status, words(outcome)) == ("ok", "y\n" * 5)


async def test_the_environment_is_the_workspace_s(bench: Bench) -> None:
    home = bench.workspace.env["HOME"]
    assert words(await _bash(bench, "echo $HOME")) == f"{home}\n"


async def test_nothing_waits_for_a_person(bench: Bench) -> None:
    outcome = await _bash(
        bench,
        "git init -q . && git config user.email a@b.c && git config user.name n && echo x > a && git add a && git commit; read line; cat; echo $GIT_TERMINAL_PROMPT$GIT_PAGER$PAGER",
        timeout=10,
    )
    assert details(outcome)["timed_out"] is False
    assert words(outcome).rstrip().splitlines()[-1] == "0catcat"


async def test_the_shell_is_bash(bench: Bench) -> None:
    command = "a=(x y); if [[ -f /etc/hosts && ${a[1]} == y ]]; then cat <(echo yes); fi"
    assert words(await _bash(bench, command)) == "yes\n"


@pytest.mark.parametrize("command", [None, 42, ["ls"]])
async def test_an_ill_typed_command_is_told(bench: Bench, command) -> None:
    outcome = await bench.run("bash", command=command)
    assert words(outcome).startswith('Validation failed for tool "bash":\n  - command: ')
    assert bench.begun == []


async def test_a_hook_can_keep_a_command_from_running(bench: Bench) -> None:
    async def block(called: ToolCalled, _: object) -> ToolCallOutcome:
        if "rm -rf" in str(called.arguments["command"]):
            return ToolBlocked(reason="危险命令需要确认")
        return GoOn()

    bench.hooks.add(Hook("gate", block), at=ToolCalled)
    path = bench.put("a.txt", "kept")
    outcome = await _bash(bench, "rm -rf .")
    assert (outcome.status, words(outcome)) == ("blocked", "危险命令需要确认")
    assert path.exists()
    assert bench.begun == []


async def test_background_children_do_not_hold_the_call(bench: Bench, mark: str) -> None:
    begun_s = time.monotonic()
    outcome = await _bash(bench, "sleep 100 & echo up")
    assert time.monotonic() - begun_s < 5
    assert outcome.status == "ok"
    assert words(outcome) == (
        "up\n\n[1 process was left running in the background when the command ended, and ended with it. What must go on for longer has to be used in the same command.]"
    )
    assert processes_with(mark) == set()


async def test_chattering_children_do_not_hold_the_call(bench: Bench, mark: str) -> None:
    with anyio.fail_after(10):
        outcome = await _bash(bench, "(while true; do echo x; done) & echo up")
    assert outcome.status == "ok"
    assert processes_with(mark) == set()


HARD: Mapping[str, str] = {
    "plain": "sleep 600 & sleep 600",
    "hidden": "(setsid nohup sleep 600 >/dev/null 2>&1 &); echo up; sleep 600",
    "deaf": "trap '' TERM INT HUP; echo up; while true; do sleep 600; done",
}


@pytest.mark.parametrize("hard", HARD)
async def test_a_cancelled_command_ends_at_once_with_everything(bench, mark, hard) -> None:
    begun_s = time.monotonic()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(_bash, bench, HARD[hard])
            while len(processes_with(mark)) < 2:
                await anyio.lowlevel.checkpoint()
            begun_s = time.monotonic()
            group.cancel_scope.cancel()
    assert time.monotonic() - begun_s < 1.5
    assert processes_with(mark) == set()
    # A shell that outlives its child for a moment reports that.
    assert "".join(bench.shown) in {"", "up\n", "up\nTerminated\n"}


async def test_what_was_written_on_the_way_out_is_kept(bench: Bench) -> None:
    command = "trap '' INT; trap 'echo bye; exit 0' TERM; echo up; sleep 100 & wait"
    outcome = await _bash(bench, command, timeout=0.5)
    assert words(outcome) == "up\nbye\n\nCommand timed out after 0.5 seconds"


class _StaleProcesses(DiskProcesses):
    """Processes of a workspace whose disk is behind the editor."""

    @override
    async def before_start(self) -> str | None:
        return "a.py has unsaved changes: programs read the old text."


async def test_the_model_is_told_when_the_disk_is_stale(bench: Bench) -> None:
    bench.workspace = replace(bench.workspace, processes=_StaleProcesses())
    assert words(await _bash(bench, "echo hello")) == (
        "hello\n\n[a.py has unsaved changes: programs read the old text.]"
    )


class _Watched(DiskProcesses):
    """Remembers what was started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[tuple[tuple[str, ...], Mapping[str, str]]] = []

    @override
    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = frozenset(),
    ) -> DiskProcess:
        self.started.append((argv, env))
        return await super().start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)


async def test_only_editors_pagers_and_prompts_are_disarmed(bench: Bench) -> None:
    processes = _Watched()
    bench.workspace = replace(bench.workspace, processes=processes)
    await _bash(bench, "true")
    assert processes.started == [
        (
            ("/bin/bash", "-c", "true"),
            {
                **bench.workspace.env,
                "EDITOR": "true",
                "VISUAL": "true",
                "GIT_EDITOR": "true",
                "GIT_SEQUENCE_EDITOR": "true",
                "GIT_PAGER": "cat",
                "PAGER": "cat",
                "GIT_TERMINAL_PROMPT": "0",
            },
        )
    ]


async def test_the_title_is_the_command(bench: Bench) -> None:
    tool = bench.tools["bash"]
    assert tool.title({"command": "ls\n  -la"}) == "$ ls -la"
    assert tool.title({"command": "x" * 200}) == "$ " + "x" * 120 + "…"
    assert tool.title({}) == "$ "


async def test_a_command_too_long_for_the_system_is_told(bench: Bench) -> None:
    outcome = await _bash(bench, "echo " + "x" * 200_000)
    assert words(outcome).startswith("The command is too long (200")
