"""What single tool calls cost beside the least that the same work can cost: read, edit, bash, floods of output."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_core.workspace.files.paths import real_path
from agent_core.workspace.sandbox import Boundaries, probe, sandbox_for
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import ROOT, Lab, Workshop
from bench.tool_bench import NOTHING, ToolBench

FILE_BYTES = 10_000_000
EDIT_TIMES = Bar(of="ratio", at_most=8)
NON_ASCII_MS = Bar(of="median", at_most=5_000)
START_TIMES = Bar(of="ratio", at_most=1.5)
CONTAINED_MS = Bar(of="median", at_most=10)
CONTAINED_TIMES = 50
READ_MS = Bar(of="median", at_most=2)
SMALL_FILE = "".join(f"line {number} of a small file\n" for number in range(40))
FLOOD_MIB = Bar(of="median", at_most=20)
NEEDLE = "needle"
LINES = {
    "ASCII": ("some line of ascii text\n", EDIT_TIMES),
    "ASCII, blanks at the ends of lines": ("a line with blanks \t\n", EDIT_TIMES),
    "ASCII, CRLF": ("some line of ascii text\r\n", None),
    "not only ASCII": ("eine Zeile mit ümlaut \n", NON_ASCII_MS),
}
FLOODS = {
    "one line": "head -c {size} /dev/zero | tr '\\0' x",
    "lines": "yes 'a line of output that is about as long as lines are' | head -c {size}",
}


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Read a small file, edit large ones, run `true`, take floods of output."""
    async with shop.lab() as lab:
        root = real_path(lab.workspace)
        bench = ToolBench(root, lab.env)
        rows = [await _reads(plan, bench, root)]
        for kind, (line, bar) in LINES.items():
            rows += await _edits(plan, bench, root, kind=kind, line=line, bar=bar)
        rows.append(await _starts(plan, bench, root, lab))
        rows += await _contained(plan, bench, root, lab)
        for kind, command in FLOODS.items():
            rows += await _floods(plan, lab, kind=kind, command=command)
        return rows


async def _reads(plan: Plan, bench: ToolBench, root: Path) -> Row:
    (root / "small.txt").write_text(SMALL_FILE, encoding="utf-8")

    async def read() -> float:
        return await _took_ms(lambda: bench.run("read", path="small.txt"))

    async def nothing() -> float:
        return await _took_ms(lambda: bench.run(NOTHING))

    await read()
    tool, call = await alternate(plan.rounds * 40, read, nothing)
    return Row(
        what="read of a small file, net of a call that does nothing",
        unit="ms",
        ours=tuple(one - other for one, other in zip(tool, call, strict=True)),
        peer=Peer(name="the call that does nothing", samples=tuple(call)),
        bar=READ_MS,
    )


async def _edits(
    plan: Plan, bench: ToolBench, root: Path, *, kind: str, line: str, bar: Bar | None
) -> list[Row]:
    half = line * (FILE_BYTES // len(line.encode()) // 2)
    ending = "\r\n" if line.endswith("\r\n") else "\n"
    file = root / "large.txt"
    file.write_bytes(f"{half}{NEEDLE}{ending}{half}".encode())
    copy = root.parent / "copy.txt"
    now, other = NEEDLE, NEEDLE.upper()

    async def edit() -> float:
        nonlocal now, other
        edits = [{"oldText": now, "newText": other}]
        took_ms = await _took_ms(lambda: bench.run("edit", path="large.txt", edits=edits))
        now, other = other, now
        return took_ms

    async def plain() -> float:
        return _blocked_ms(lambda: _copied(file, copy))

    async def careful() -> float:
        return _blocked_ms(lambda: _replaced(file, copy))

    await edit()
    await plain()
    ours, floor = await alternate(plan.rounds * 5, edit, plain)
    _, safe = await alternate(plan.rounds * 2, edit, careful)
    file.unlink()
    return [
        Row(
            what=f"edit in 10 MB ({kind})",
            unit="ms",
            ours=tuple(ours),
            peer=Peer(name="reading and writing the file", samples=tuple(floor)),
            bar=bar,
        ),
        Row(
            what=f"edit in 10 MB ({kind})",
            unit="ms",
            ours=tuple(ours),
            peer=Peer(name="the same with fsync and rename", samples=tuple(safe)),
        ),
    ]


async def _starts(plan: Plan, bench: ToolBench, root: Path, lab: Lab) -> Row:
    async def ours() -> float:
        return await _took_ms(lambda: bench.run("bash", command="true"))

    async def plain() -> float:
        return _blocked_ms(lambda: _plainly_run(root, lab))

    await ours()
    tool, floor = await alternate(plan.rounds * 40, ours, plain)
    return Row(
        what="bash `true`",
        unit="ms",
        ours=tuple(tool),
        peer=Peer(name="bash -c true, started and awaited", samples=tuple(floor)),
        bar=START_TIMES,
    )


async def _contained(plan: Plan, bench: ToolBench, root: Path, lab: Lab) -> list[Row]:
    """Run `true` contained and not, in turn; nothing where this machine does not contain."""
    containing = await asyncio.to_thread(probe)
    if containing.level != "full":
        return []
    boundaries = Boundaries(roots=(root,), env=lab.env)
    sandbox = await asyncio.to_thread(sandbox_for, containing, boundaries)
    inside = ToolBench(root, lab.env, sandbox=sandbox)

    async def contained() -> float:
        return await _took_ms(lambda: inside.run("bash", command="true"))

    async def plain() -> float:
        return await _took_ms(lambda: bench.run("bash", command="true"))

    try:
        await contained()
        times = max(plan.rounds, CONTAINED_TIMES)
        more, least = await alternate(times, contained, plain)
    finally:
        await asyncio.to_thread(sandbox.close)
    return [
        Row(
            what="bash true in containment, net of bash true without",
            unit="ms",
            ours=tuple(one - other for one, other in zip(more, least, strict=True)),
            peer=Peer(name="bash true without containment", samples=tuple(least)),
            bar=CONTAINED_MS,
        )
    ]


async def _floods(plan: Plan, lab: Lab, *, kind: str, command: str) -> list[Row]:
    size = 10**9 if plan.name == "full" else 10**8
    command = command.format(size=size)
    program = (sys.executable, "-m", "bench.flood", command)
    into = lab.workspace.parent / "flood.txt"
    mib: list[float] = []
    took: list[float] = []
    floor: list[float] = []
    for _ in range(1 if plan.name == "quick" else 3):
        began = time.monotonic()
        plain = await asyncio.create_subprocess_exec(
            "bash", "-c", f"{command} | cat > '{into}'", env=lab.env
        )
        await plain.wait()
        floor.append(time.monotonic() - began)
        into.unlink()
        ours = await asyncio.create_subprocess_exec(
            *program, stdout=asyncio.subprocess.PIPE, env=lab.env, cwd=ROOT
        )
        told = json.loads((await ours.communicate())[0])
        mib.append(told["mib"])
        took.append(told["s"])
    what = f"bash, {size / 1e9:g} GB of output ({kind})"
    return [
        Row(what=f"{what}: memory over idle", unit="MiB", ours=tuple(mib), bar=FLOOD_MIB),
        Row(
            what=what,
            unit="s",
            ours=tuple(took),
            peer=Peer(name="the same into `cat > file`", samples=tuple(floor)),
        ),
    ]


async def _took_ms(work: Callable[[], Awaitable[None]]) -> float:
    began = time.monotonic()
    await work()
    return (time.monotonic() - began) * 1000


def _blocked_ms(work: Callable[[], object]) -> float:
    """Time a floor: nothing else is to run meanwhile."""
    began = time.monotonic()
    work()
    return (time.monotonic() - began) * 1000


def _copied(file: Path, copy: Path) -> None:
    copy.write_bytes(file.read_bytes())


def _replaced(file: Path, copy: Path) -> None:
    temp = copy.with_suffix(".tmp")
    with temp.open("wb") as opened:
        opened.write(file.read_bytes())
        opened.flush()
        os.fsync(opened.fileno())
    temp.replace(copy)


def _plainly_run(root: Path, lab: Lab) -> None:
    argv = ("/bin/bash", "-c", "true")
    with subprocess.Popen(  # noqa: S603 - the command is ours
        argv, stdin=subprocess.DEVNULL, cwd=root, env=lab.env, start_new_session=True
    ) as process:
        process.wait()


BENCHMARK = Benchmark(name="tools", title="Single tool calls", run=measure)
