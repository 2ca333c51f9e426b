"""Many tasks with random ends leave nothing behind: no task of asyncio, open file, process or lock of a session."""

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import psutil
import pytest

from agent_core.events import TaskCreated, TaskEnded
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import ProviderError
from agent_core.messages import UserMessage
from agent_core.providers import ModelRequest
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.tools.task_port import TaskOpening
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.session.tools.test_tasks import ended, give, ground
from tests.support.harness.sizes import at_size
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say
from tests.support.session.sessions import Bench
from tests.support.workspace.processes import descendants

Fate = Literal["completed", "failed", "stopped", "cancelled"]
IN_BACKGROUND: Final[Sequence[Fate]] = ("completed", "failed", "stopped")
AWAITED: Final[Sequence[Fate]] = ("completed", "failed", "cancelled")
SIDE_BY_SIDE: Final = 4
ROUND_S: Final = at_size(ci=20, campaign=60)


def fates_of(rounds: int) -> list[list[Fate]]:
    """Return how each task ends: every second round is awaited, and is cancelled with its run."""
    chance = random.Random(7)  # noqa: S311 - the same ends each time
    drawn: list[list[Fate]] = [
        [chance.choice((IN_BACKGROUND, AWAITED)[n % 2]) for _ in range(SIDE_BY_SIDE)]
        for n in range(rounds)
    ]
    for fates in drawn[1::2]:
        fates[-1] = "cancelled"
    return drawn


def model_for(fate: Fate, held: Gate) -> ScriptedModel:
    match fate:
        case "completed":
            return ScriptedModel([call("ls"), say("Fine.")])
        case "failed":
            return ScriptedModel([ProviderError("no", reason="auth", provider="scripted")])
        case "stopped":
            return ScriptedModel([call("bash", {"command": "sleep 600"})])
        case "cancelled":
            return ScriptedModel([(held, *say("never"))])


def giver(rounds: int) -> Iterator[Callable[[ModelRequest], Any]]:
    """Return the turns of the model that gives tasks: four after each prompt, words after anything else."""

    def turn(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if not isinstance(last, UserMessage):
            return say("So.")
        in_background = "background" in str(last.content)
        gives = [give("x", id=f"c{n}", background=in_background) for n in range(SIDE_BY_SIDE)]
        return both(*gives)

    return (turn for _ in range(8 * rounds))


async def end_round(it: Bench, fates: Sequence[Fate], held: Sequence[Gate], before: int) -> None:
    """Wait for the tasks that end by themselves, and end the others as their fate is; the events seen are those of the round."""
    _ = await it.until(TaskCreated, len(fates))
    stuck = sum(fate in {"stopped", "cancelled"} for fate in fates)
    if stuck < len(fates):
        _ = await it.until(TaskEnded, len(fates) - stuck)
    if "cancelled" in fates:
        for gate, fate in zip(held, fates, strict=True):
            if fate == "cancelled":
                await gate.reached.wait()
        _ = await it.session.abort()
    for task, fate in zip(it.session.tasks.list()[before:], fates, strict=True):
        if fate == "stopped":
            await runs_command(it, task.id)
            _ = await it.session.tasks.stop_for_user(task.id)
    _ = await it.until(TaskEnded, len(fates))
    _ = await it.idle()


async def runs_command(it: Bench, id_: str) -> None:
    while not next(one for one in it.session.tasks.list() if one.id == id_).activity:
        _ = it.seen()
        await it.reader.wait()


def held_by_process() -> tuple[int, set[int], set[str]]:
    """Return the tasks of asyncio, the child processes and the open files."""
    files = {one.path for one in psutil.Process().open_files()}
    return len(asyncio.all_tasks()), descendants(os.getpid()), files


async def check_nothing_is_left(folder: Path, rounds: int) -> None:
    root = folder / "project"
    root.mkdir()
    store = JsonlStore(folder / "sessions", SystemClock())
    workspace = Workspace(
        roots=(root,),
        files=DiskFiles((root,), root),
        processes=DiskProcesses(),
        env={"PATH": os.defpath},
    )
    context = WorkspaceContext(workspace=workspace, permissions=PermissionState(mode="yolo"))
    drawn = fates_of(rounds)
    gates = [[Gate() for _ in fates] for fates in drawn]

    def model(opening: TaskOpening) -> ScriptedModel:
        round_, place = divmod(int(opening.id[1:]) - 1, SIDE_BY_SIDE)
        return model_for(drawn[round_][place], gates[round_][place])

    states: dict[str, str] = {}
    asyncio.get_running_loop().set_debug(True)
    before = held_by_process()
    async with ground(*giver(rounds), tasks=model, store=store, workspace=context) as (
        it,
        sessions,
    ):
        for n, fates in enumerate(drawn):
            await it.session.prompt("await" if n % 2 else "background")
            with anyio.fail_after(ROUND_S):
                await end_round(it, fates, gates[n], n * SIDE_BY_SIDE)
            states |= {one.id: one.state for one in ended(it)}
            # Looking through the events of all rounds at each event took seconds a round on a loaded machine.
            it.events.clear()
        expected = ["cancelled" if one == "stopped" else one for fates in drawn for one in fates]
        assert states == {f"t{n + 1}": state for n, state in enumerate(expected)}
        assert sessions.open_sessions == 0
        tasks = [one.session for one in it.session.tasks.list()]
    assert held_by_process() == before
    # No lock is held: each can be opened again.
    for session in tasks:
        opened = await store.tasks.open(session)
        await opened.log.close()


@pytest.mark.timeout(at_size(ci=35, campaign=300))
async def test_tasks_with_random_ends_leave_nothing_behind(tmp_path: Path) -> None:
    await check_nothing_is_left(tmp_path, rounds=at_size(ci=2, campaign=200))


@pytest.mark.timeout(120)
async def test_two_hundred_tasks_with_random_ends_leave_nothing_behind(tmp_path: Path) -> None:
    await check_nothing_is_left(tmp_path, rounds=50)
