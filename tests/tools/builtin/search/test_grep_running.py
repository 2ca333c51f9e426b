"""A search that goes on for long: it can be ended, holds little in memory, and never holds up anything else."""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_core.tools.runner import ToolOutcome
from agent_core.workspace import Process
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.processes import processes_with
from tests.support.workspace.searches import ENGINES, Engine, searching_with
from tests.tools.conftest import WITH_AND_WITHOUT, Bench, details, words

pytestmark = WITH_AND_WITHOUT

ENDLESS = '#!/bin/sh\nwhile :; do echo \'{"type":"begin","data":{"path":{"text":"./a"}}}\'; done\n'
SILENT = "#!/bin/sh\nsleep 600\n"
CLEAR = Path("/proc/self/clear_refs")
"""Writing 5 makes the peak of memory begin anew."""
ROOT = Path("/nowhere/on/this/machine")


def _program(bench: Bench, script: str, *, version: str = "14.1.0") -> None:
    """Put a ripgrep of our own on the PATH."""
    head = f'#!/bin/sh\n[ "$1" = --version ] && echo "ripgrep {version}" && exit\n'
    script = script.replace("#!/bin/sh\n", head)
    folder = bench.root.parent / "bin"
    folder.mkdir()
    (folder / "rg").write_text(script, "utf-8")
    (folder / "rg").chmod(0o755)
    env = {**bench.workspace.env, "PATH": f"{folder}:/usr/bin:/bin", "TEST_MARK": bench.root.name}
    bench.workspace = replace(bench.workspace, env=env)


class Counting:
    """Starts programs, and knows which."""

    def __init__(self) -> None:
        self.started: list[Process] = []
        self._processes = DiskProcesses()

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = frozenset(),
    ) -> Process:
        process = await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        self.started.append(process)
        return process

    async def before_start(self) -> str | None:
        return await self._processes.before_start()


@pytest.mark.parametrize("script", [ENDLESS, SILENT], ids=["endless", "silent"])
@pytest.mark.parametrize("tool", ["grep", "find"])
async def test_a_cancel_ends_it_at_once_and_leaves_no_process(
    bench: Bench, tool: str, script: str
) -> None:
    _program(bench, script)
    counting = Counting()
    bench.workspace = replace(bench.workspace, processes=counting)
    begun = time.monotonic()
    with anyio.move_on_after(0.3) as scope:
        await bench.run(tool, pattern="x")
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 3
    assert counting.started
    for process in counting.started:
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
    assert processes_with(f"TEST_MARK={bench.root.name}") == set()


async def test_a_ripgrep_that_cannot_run_is_done_without(bench: Bench) -> None:
    _program(bench, "#!/bin/sh\nexit 127\n")
    bench.put("a.txt", "x\n")
    for tool, told in (("grep", "a.txt:1: x"), ("find", "a.txt")):
        outcome = await bench.run(tool, pattern="x" if tool == "grep" else "a*")
        assert (words(outcome), details(outcome)["engine"]) == (told, "builtin")


async def test_a_ripgrep_that_knows_other_options_is_done_without(bench: Bench) -> None:
    _program(bench, "#!/bin/sh\necho 'error: unexpected argument' >&2\nexit 2\n")
    bench.put("a.txt", "x\n")
    for tool, told in (("grep", "a.txt:1: x"), ("find", "a.txt")):
        outcome = await bench.run(tool, pattern="x" if tool == "grep" else "a*")
        assert (words(outcome), details(outcome)["engine"]) == (told, "builtin")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){25}$"])
async def test_a_pattern_that_never_ends_holds_up_nobody(bench: Bench, pattern: str) -> None:
    bench.workspace = searching_with("builtin", bench.workspace)
    bench.put("a.txt", f"fine\n{'a' * 5_000}b\n")
    longest = 0.0
    outcomes: list[ToolOutcome] = []

    async def beat() -> None:
        nonlocal longest
        while True:
            begun = time.monotonic()
            await anyio.sleep(0.01)
            longest = max(longest, time.monotonic() - begun)

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        outcomes.append(await bench.run("grep", pattern=pattern))
        group.cancel_scope.cancel()
    (outcome,) = outcomes
    assert (outcome.status, words(outcome)) == (
        "error",
        (
            f"The pattern {pattern!r} takes too long in line 2 of a.txt: write it without repetitions "
            "inside of repetitions, or set literal to true"
        ),
    )
    assert longest < 0.4


async def test_a_cancel_ends_a_search_without_ripgrep_too(bench: Bench) -> None:
    bench.workspace = searching_with("builtin", bench.workspace)
    bench.put("a.txt", "x\n" * 2_000_000)
    begun = time.monotonic()
    with anyio.move_on_after(0.2) as scope:
        await bench.run("grep", pattern="(x?){20}y")
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 1


async def test_without_ripgrep_a_file_that_is_too_large_is_counted(bench: Bench) -> None:
    bench.workspace = searching_with("builtin", bench.workspace)
    with bench.put("huge.txt", "x\n").open("r+b") as file:
        file.truncate(100_000_000)
    bench.put("a.txt", "x\n")
    outcome = await bench.run("grep", pattern="x")
    assert words(outcome) == "a.txt:1: x"
    assert details(outcome)["too_large_count"] == 1


async def test_files_that_are_nowhere_on_this_machine_are_searched(bench: Bench) -> None:
    files = MemoryFiles(
        (ROOT,),
        ROOT,
        files={
            ROOT / "a.txt": b"x\n",
            ROOT / "sub/b.txt": b"x\n",
            ROOT / "sub/c.log": b"x\n",
            ROOT / ".gitignore": b"*.log\n",
        },
    )
    bench.workspace = replace(bench.workspace, roots=(ROOT,), files=files)
    grepped = await bench.run("grep", pattern="x")
    assert words(grepped) == "a.txt:1: x\nsub/b.txt:1: x"
    found = await bench.run("find", pattern="*.{txt,log}")
    assert words(found) == "a.txt\nsub/b.txt"
    listed = await bench.run("ls")
    assert words(listed) == ".gitignore\na.txt\nsub/"
    assert [details(one).get("engine") for one in (grepped, found)] == ["builtin"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
async def test_lines_with_a_million_matches_take_little_memory(bench: Bench) -> None:
    line = b"needle " * 1_000_000 + b"\n"
    with bench.put("wide.txt", line).open("ab") as file:
        for _ in range(20):
            file.write(line)
    before = _peak_anew_kib()
    outcome = await bench.run("grep", pattern="needle [a-z]", limit=5)
    assert words(outcome).startswith("wide.txt:1: needle needle")
    assert details(outcome)["match_count"] == 5
    assert _peak_kib() - before < 60_000


def _peak_anew_kib() -> int:
    CLEAR.write_text("5", "ascii")
    return _peak_kib()


def _peak_kib() -> int:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


@pytest.mark.parametrize("engine", ENGINES)
async def test_ten_thousand_matches_end_at_the_limit(bench: Bench, engine: Engine) -> None:
    bench.workspace = searching_with(engine, bench.workspace)
    bench.put("a.txt", "x\n" * 10_000)
    outcome = await bench.run("grep", pattern="x")
    assert words(outcome).splitlines()[99:] == [
        "a.txt:100: x",
        "",
        "[100 matches limit reached. Use limit=200 for more, or refine pattern]",
    ]
    assert details(outcome)["engine"] == engine


async def test_the_ripgrep_on_the_path_of_the_workspace_goes_first(bench: Bench) -> None:
    real = Path(sys.executable).parent / "rg"
    _program(bench, f'#!/bin/sh\ntouch "{bench.root}/was-run"\nexec "{real}" "$@"\n')
    bench.put("a.txt", "x\n")
    outcome = await bench.run("grep", pattern="x")
    assert (words(outcome), details(outcome)["engine"]) == ("a.txt:1: x", "ripgrep")
    assert (bench.root / "was-run").exists()


@pytest.mark.parametrize("version", ["13.0.0", "14.0.3", "unknown"])
async def test_a_ripgrep_of_another_behaviour_is_passed_over(bench: Bench, version: str) -> None:
    _program(bench, f'#!/bin/sh\ntouch "{bench.root}/was-run"\n', version=version)
    bench.put("a.txt", "x\n")
    outcome = await bench.run("grep", pattern="x")
    assert (words(outcome), details(outcome)["engine"]) == ("a.txt:1: x", "ripgrep")
    assert not (bench.root / "was-run").exists()


async def test_an_invalid_glob_is_an_error_beside_an_old_ripgrep(bench: Bench) -> None:
    _program(bench, "#!/bin/sh\nexit 1\n", version="13.0.0")
    outcome = await bench.run("grep", pattern="x", glob="a[")
    assert outcome.status == "error"


async def test_a_version_is_asked_for_once_while_the_program_stays_the_same(bench: Bench) -> None:
    real = Path(sys.executable).parent / "rg"
    log = bench.root / "asked"
    _program(bench, f'#!/bin/sh\nexec "{real}" "$@"\n')
    script = bench.root.parent / "bin" / "rg"
    counting = script.read_text("utf-8").replace(
        "#!/bin/sh\n", f'#!/bin/sh\necho "$1" >> "{log}"\n'
    )
    script.write_text(counting, "utf-8")
    bench.put("a.txt", "x\n")
    for _ in range(3):
        await bench.run("find", pattern="*.txt")
    assert log.read_text("utf-8").split().count("--version") == 1
    script.write_text(counting.replace("14.1.0", "13.0.0"), "utf-8")
    outcome = await bench.run("find", pattern="*.txt")
    assert (words(outcome), details(outcome)["engine"]) == ("a.txt", "ripgrep")
    assert log.read_text("utf-8").split().count("--files") == 3
