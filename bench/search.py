"""What grep and find cost in a large tree beside ripgrep alone, started and its output read."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_core.kernel import JsonValue
from agent_core.workspace.files.paths import real_path
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Workshop
from bench.tool_bench import ToolBench

FOLDERS = 5_000
FILES_A_FOLDER = 10
RARE_EVERY = 9_973
RIPGREP = str(Path(sys.executable).parent / "rg")
TIMES = Bar(of="ratio", at_most=1.2)
SHARED = ("--no-config", "--color=never", "--hidden", "--no-messages", "--no-require-git")
GREP = (*SHARED, "--no-ignore-messages", "--json", "--line-number", "--crlf")
CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A search, by our tool and by ripgrep alone."""

    what: str
    tool: str
    arguments: Mapping[str, JsonValue]
    argv: tuple[str, ...]


TASKS = (
    Task(
        what="grep of a rare word",
        tool="grep",
        arguments={"pattern": "needle_rare"},
        argv=(*GREP, "--max-count=101", "--regexp=needle_rare"),
    ),
    Task(
        what="grep of a common word, to the limit",
        tool="grep",
        arguments={"pattern": "common"},
        argv=(*GREP, "--max-count=101", "--regexp=common"),
    ),
    Task(
        what="find of a glob",
        tool="find",
        arguments={"pattern": "*.txt"},
        argv=(*SHARED, "--files", "--null"),
    ),
    Task(
        what="find of a name",
        tool="find",
        arguments={"pattern": "file_7.py"},
        argv=(*SHARED, "--files", "--null"),
    ),
    Task(
        what="find of a path",
        tool="find",
        arguments={"pattern": "part3/**/*_4.*"},
        argv=(*SHARED, "--files", "--null"),
    ),
)


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Search fifty thousand small files."""
    async with shop.lab() as lab:
        root = real_path(lab.workspace)
        await asyncio.to_thread(_planted, root)
        bench = ToolBench(root, lab.env)
        return [await _row(task, plan, bench, root, lab.env) for task in TASKS]


async def _row(task: Task, plan: Plan, bench: ToolBench, root: Path, env: Mapping[str, str]) -> Row:
    async def tool() -> float:
        return await _took_ms(lambda: bench.run(task.tool, **task.arguments))

    async def alone() -> float:
        return await _took_ms(lambda: asyncio.to_thread(_ripgrep, task.argv, root, env))

    await tool()
    await alone()
    ours, theirs = await alternate(max(plan.rounds * 5, 9), tool, alone)
    return Row(
        what=f"{task.what} in {FOLDERS * FILES_A_FOLDER:,} files",
        unit="ms",
        ours=tuple(ours),
        peer=Peer(name="ripgrep alone", samples=tuple(theirs)),
        bar=TIMES,
    )


async def _took_ms(act: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic()
    await act()
    return (time.monotonic() - began) * 1000


def _ripgrep(argv: tuple[str, ...], root: Path, env: Mapping[str, str]) -> None:
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - ripgrep, which everything is compared with
            (RIPGREP, *argv, "--glob=!.git", "--", "./"),
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            start_new_session=True,  # as ours: the scheduler gives to sessions, not to processes
        )
    finally:
        os.close(writing)
    with process, os.fdopen(reading, "rb", buffering=0) as output:
        while output.read(CHUNK_BYTES):
            pass


def _planted(root: Path) -> None:
    """Write the files; some are ignored, few have the rare word, all have the common one."""
    (root / ".gitignore").write_text("*_9.py\nmod03/\n", "utf-8")
    number = 0
    for index in range(FOLDERS):
        folder = root / f"pkg{index // 250:02}/mod{index // 10 % 25:02}/part{index % 10}"
        folder.mkdir(parents=True)
        for each in range(FILES_A_FOLDER):
            rare = "needle_rare\n" if number % RARE_EVERY == 0 else ""
            text = f"def common_{number}(x):\n    return common + {number}\n" * 6 + rare
            name = f"file_{each}.{'py' if each % 2 else 'txt'}"
            (folder / name).write_text(text, "utf-8")
            number += 1


BENCHMARK = Benchmark(name="search", title="Searches in a large tree", run=measure)
