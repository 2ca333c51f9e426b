"""The tool bash: whatever a command does to hide its processes, none is left when it has ended, however it ended."""

import random
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from tests.support.harness.sizes import at_size
from tests.support.workspace.processes import wait_gone
from tests.tools.conftest import Bench

LEFT_S = 2.0
"""Nothing lives longer than this after the end."""
RUNS = 10
BATCHES = at_size(ci=1, campaign=20)
SEED = secrets.randbits(32)

# Each gives a command that runs another one, hidden a little better.
LAYERS: Mapping[str, Callable[[str], str]] = {
    "setsid": lambda inner: f"setsid bash -c {shlex.quote(inner)} &",
    "double fork": lambda inner: f"( ( {inner} ) & )",
    "nohup": lambda inner: f"nohup bash -c {shlex.quote(inner)} >/dev/null 2>&1 &",
    "deaf": lambda inner: f"trap '' TERM INT HUP; {inner}",
    "closed": lambda inner: f"( exec 0<&- 1>&- 2>&-; {inner} )",
    "renamed": lambda inner: f"(exec -a '[kworker/0:1]' bash -c {shlex.quote(inner)})",
    "no environment": lambda inner: f"env -i PATH=$PATH bash -c {shlex.quote(inner)}",
    "elsewhere": lambda inner: f"cd /; {inner}",
    "gone at once": lambda inner: (
        f"setsid env -i PATH=$PATH bash -c {shlex.quote(f'( {inner} ) & exit')}"
    ),
}
SAY = "read -r stat </proc/$BASHPID/stat; echo $stat >{pids}/$BASHPID"
LEAVES: Mapping[str, str] = {
    "sleeper": f"{SAY}; exec sleep 600",
    "shell": f"{SAY}; while true; do sleep 600; done",
    "breeder": f"while true; do ({SAY}; exec sleep 600) & sleep 0.01; done",
    "hiding breeder": f"while true; do (setsid env -i PATH=$PATH bash -c '{SAY}; exec sleep 600' &); sleep 0.01; done",
}
ENDS = ("normal", "timeout", "abort")


@pytest.mark.timeout(60)
@pytest.mark.skipif(sys.platform != "linux", reason="without /proc some processes can hide")
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("end", ENDS)
async def test_no_process_is_left_whatever_it_does_to_hide(bench, end: str, batch: int) -> None:
    print("seed", SEED)
    chance = random.Random(f"{SEED} {end} {batch}")  # noqa: S311 - repeatable, not secret
    told: list[Path] = []
    for number in range(RUNS):
        pids = bench.root / f"pids-{number}"
        pids.mkdir()
        told.append(pids)
        layers = chance.choices(list(LAYERS), k=chance.randint(1, 4))
        leaf = chance.choice(list(LEAVES))
        command = LEAVES[leaf].replace("{pids}", shlex.quote(str(pids)))
        for layer in layers:
            command = LAYERS[layer](command.removesuffix("&"))
        await _run(bench, f"{command.removesuffix('&')} &", pids, end)
        assert _left(pids) == set(), (layers, leaf)
    for pids in told:
        assert _told(pids)
        assert _left(pids) == set()


async def _run(bench: Bench, command: str, pids: Path, end: str) -> None:
    """Run a command that is surely at work when it ends, in the way that is asked for."""
    up = f'until [ -n "$(ls {shlex.quote(str(pids))})" ]; do sleep 0.005; done'
    if end == "normal":
        await bench.run("bash", command=f"{command}\n{up}", timeout=15)
        return
    if end == "timeout":
        for timeout_s in (0.5, 2, 8):
            await bench.run("bash", command=f"{command}\nsleep 600", timeout=timeout_s)
            if _told(pids):
                break
        return
    async with anyio.create_task_group() as group:
        group.start_soon(bench.call, "bash", {"command": f"{command}\nsleep 600"})
        with anyio.fail_after(15):
            while not _told(pids):
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


def _told(pids: Path) -> list[Path]:
    return list(pids.iterdir())


def _left(pids: Path) -> set[int]:
    """Give the processes that said they were there and still are after a while."""
    born = {int(file.name): file.read_text() for file in _told(pids)}
    now = {pid for pid, stat in born.items() if not stat or _started(pid) == _start_in(stat)}
    return wait_gone(now, timeout_s=LEFT_S)


def _started(pid: int) -> str | None:
    try:
        return _start_in(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _start_in(stat: str) -> str:
    # With its number, a process that has it later is told apart.
    return stat.rpartition(")")[2].split()[19]
