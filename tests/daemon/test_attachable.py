"""Other programs of the user neither read nor attach to Tiller's processes, unless the user himself allows it."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.clients.daemons import DAEMON, daemon_process, editor, log_of
from tests.support.clients.server import SERVER, TILLER, Ground
from tests.support.clients.shims import shim, stand_in
from tiller_server.process.memory_privacy import SWITCH, allows_debugger

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a protection"),
]

WITHIN_S = 20.0
ROOT_SEES_ALL = 77
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
# Root may attach to anything: what the next program starts with is less than that.
WITHOUT_PTRACE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 19, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
PARENT = f"""
import re, subprocess, sys
rights = re.search(r"^CapEff:\\s*(\\w+)", open("/proc/self/status").read(), re.M)[1]
if int(rights, 16) >> 19 & 1:
    sys.exit({ROOT_SEES_ALL})
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
for _ in sys.stdin:
    try:
        open(f"/proc/{{child.pid}}/mem", "rb").close()
        print("readable", flush=True)
    except PermissionError:
        print("refused", flush=True)
child.kill()
child.wait()
"""


@contextmanager
def started(
    command: tuple[str, ...], env: Mapping[str, str], *, stderr: Path
) -> Generator[Callable[[], str]]:
    """Start a command below a parent without special rights; yield how that parent finds its memory."""
    python = (sys.executable, "-I", "-c")
    with (
        stderr.open("w", encoding="utf-8") as said,
        subprocess.Popen(
            (*python, WITHOUT_PTRACE, *python, PARENT, *command),
            env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
        ) as parent,
    ):  # fmt: skip
        assert parent.stdin is not None
        assert parent.stdout is not None
        asked, answers = parent.stdin, parent.stdout

        def memory() -> str:
            try:
                asked.write("look\n")
                asked.flush()
            except BrokenPipeError:
                assert parent.wait() == ROOT_SEES_ALL
                pytest.skip("the right to attach to everything cannot be given up here")
            return answers.readline().strip()

        try:
            yield memory
        finally:
            asked.close()


def becomes(holds: Callable[[], bool]) -> bool:
    """Wait for a condition; False when it does not come about in time."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("command", [DAEMON, SERVER], ids=["daemon", "in-process"])
def test_no_program_of_the_user_reads_its_memory(
    ground: Ground, tmp_path: Path, command: tuple[str, ...]
) -> None:
    env = {**ground.env, SWITCH: "0"}
    with started(command, env, stderr=tmp_path / "stderr") as memory:
        assert becomes(lambda: memory() == "refused")
    assert SWITCH not in log_of(env) + (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("command", [DAEMON, SERVER], ids=["daemon", "in-process"])
def test_with_the_switch_it_is_attachable_and_says_so(
    ground: Ground, tmp_path: Path, command: tuple[str, ...]
) -> None:
    if YAMA.exists() and int(YAMA.read_text("utf-8")) > 1:
        pytest.skip("nothing but root may attach to anything here")
    env = {**ground.env, SWITCH: "1"}
    stderr = tmp_path / "stderr"

    def warned() -> bool:
        return f" WARNING tiller_server.process.memory_privacy: {SWITCH}=1: " in (
            log_of(env) + stderr.read_text()
        )

    with started(command, env, stderr=stderr) as memory:
        assert memory() in {"readable", "refused"}  # before it has begun
        assert becomes(warned)
        assert memory() == "readable"


@pytest.mark.parametrize("value", [None, "", "0", "true", " 1"])
def test_only_a_one_switches_the_protection_off(value: str | None) -> None:
    assert not allows_debugger({} if value is None else {SWITCH: value})


async def test_an_editor_that_has_the_switch_opens_no_daemon_that_runs(ground: Ground) -> None:
    env = dict(ground.env)
    async with (
        daemon_process(env),
        await editor(env, ground.root, env={**env, SWITCH: "1"}) as client,
    ):
        _ = await client.request("agent/status", {})
        assert SWITCH not in log_of(env)


async def test_what_an_editor_spawns_says_that_it_is_attachable(ground: Ground) -> None:
    env = {**ground.env, SWITCH: "1"}
    log = ground.root / "shim.log"
    async with stand_in(env) as daemon, shim(ground, "--log-file", str(log), env=env) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.initialize(root=None))
            guest = await daemon.guest()
            await guest.introduce()
        assert becomes(lambda: log.exists() and f"{SWITCH}=1: " in log.read_text())


def test_a_command_says_so_whatever_the_level_of_its_log(ground: Ground) -> None:
    for env, said in ((ground.env, 0), ({**ground.env, SWITCH: "1"}, 1)):
        ran = subprocess.run(
            [*TILLER, "run", "--model", "no/such", "hello"],
            env=env, cwd=ground.root, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert ran.returncode != 0
        assert ran.stderr.count(f"{SWITCH}=1: ") == said


def test_no_file_of_a_workspace_sets_it(ground: Ground, tmp_path: Path) -> None:
    ground.file(".env", f"{SWITCH}=1\n")
    ground.file(".tiller/settings.json", f'{{"env": {{"{SWITCH}": "1"}}, "{SWITCH}": "1"}}')
    here = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(ground.root), *SERVER)
    with started(here, ground.env, stderr=tmp_path / "stderr") as memory:
        assert becomes(lambda: memory() == "refused")
