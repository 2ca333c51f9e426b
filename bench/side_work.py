"""How long a task takes to start, and what the machinery of tasks, background commands, plans and worktrees costs unused."""

import asyncio
import os
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench.client import Client, ended
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Lab, Workshop, answer_of

START_MS: Final = Bar(of="median", at_most=15)
TURN: Final = 20
"""Turns of one run."""
WITHOUT: Final = ("default", "-task", "-background")
"""The tools without those of this machinery; `plan` is in mode `plan` only, and worktrees have no tool."""
MACHINERY: Final = (
    "agent_core.assembly.task_parts",
    "agent_core.session.history.plans",
    "agent_core.session.tools.background",
    "agent_core.session.tools.task_recovery",
    "agent_core.session.tools.tasks",
    "agent_core.tools.builtin.background",
    "agent_core.tools.builtin.plan",
    "agent_core.tools.builtin.task",
    "agent_core.workspace.git.worktrees",
)
"""Modules that only this machinery needs."""
IMPORTS: Final = {"PYTHONPROFILEIMPORTTIME": "1"}


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start tasks; run turns with and without the tools; count the modules that an ordinary run loads."""
    async with shop.lab() as lab, lab.tiller() as client:
        return [
            await _starts(plan, lab, client),
            await _turns(plan, lab, client),
            await _modules(lab),
        ]


async def _starts(plan: Plan, lab: Lab, client: Client) -> Row:
    """Measure from the end of the answer that calls the tool to the first request of the task."""
    await client.open_session()
    stream = await client.follow()
    starts: list[float] = []
    for number in range(plan.prompts + 1):
        known = len(lab.provider.log(bodies="without"))
        lab.provider.script([_call("task", _order(number)), answer_of(1), answer_of(1)])
        await ended(stream, await client.prompt())
        caller, task, *_ = lab.provider.log(since=known, bodies="without")
        starts.append((task["head_at"] - caller["ended_at"]) * 1000)
    await stream.unsubscribe()
    return Row(
        what="start of a task: end of the answer that calls `task` to the first request of the task",
        unit="ms",
        ours=tuple(starts[1:]),
        bar=START_MS,
        note=f"the first task of the process {starts[0]:.1f} ms",
    )


def _order(number: int) -> dict[str, Any]:
    return {"description": f"look {number}", "prompt": f"Say {number}.", "preset": "explore"}


def _call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    usage = {"input": 10, "output": 10}
    return {"tool_calls": [{"name": tool, "arguments": arguments}], "usage": usage}


async def _turns(plan: Plan, lab: Lab, client: Client) -> Row:
    """Compare turns of a session that has the tools with those of one that does not."""
    _ = (lab.workspace / "small.txt").write_text("a line\n" * 40, encoding="utf-8")
    for tools in (("default",), WITHOUT):
        _ = await _turn_ms(lab, client, tools)
    with_them, without = await alternate(
        plan.rounds * 4,
        lambda: _turn_ms(lab, client, ("default",)),
        lambda: _turn_ms(lab, client, WITHOUT),
    )
    pairs = [one - other for one, other in zip(with_them, without, strict=True)]
    return Row(
        what=f"a turn with the tools of tasks and background commands, unused ({TURN} turns with one `read` each)",
        unit="ms",
        ours=tuple(with_them),
        peer=Peer(name="a turn without these tools", samples=tuple(without)),
        note=f"difference pair by pair {median(pairs):+.2f} [{min(pairs):+.2f}..{max(pairs):+.2f}] ms",
    )


async def _turn_ms(lab: Lab, client: Client, tools: Sequence[str]) -> float:
    await client.open_session()
    _ = await client.timed("agent/session/configure", {"set": {"tools": list(tools)}})
    stream = await client.follow()
    reads = [_call("read", {"path": "small.txt", "limit": 500 + n}) for n in range(TURN - 1)]
    lab.provider.script([*reads, answer_of(1)])
    taken = await client.prompt()
    _ = await ended(stream, taken)
    took_s = time.monotonic() - taken.sent
    await stream.unsubscribe()
    return took_s * 1000 / TURN


async def _modules(lab: Lab) -> Row:
    """Count the modules of the machinery that a run with one call of another tool loads."""
    lab.provider.script([_call("read", {"path": "small.txt"}), answer_of(1)])
    process = await asyncio.create_subprocess_exec(
        *lab.tiller_argv("run", "--no-session", "--trust", "--no-daemon", "Go on."),
        env={**lab.env, **IMPORTS},
        cwd=lab.workspace,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode != os.EX_OK:
        message = f"tiller run ended with {process.returncode}: {said.decode()[-500:]}"
        raise RuntimeError(message)
    imported = {line.rpartition("|")[2].strip() for line in said.decode().splitlines()}
    loaded = sorted(name for name in imported if name.startswith(MACHINERY))
    return Row(
        what="modules of the machinery that `tiller run` loads without using it",
        unit="modules",
        ours=(float(len(loaded)),),
        note=", ".join(loaded) or "none",
    )


BENCHMARK = Benchmark(name="side-work", title="Tasks and other work beside a run", run=measure)
