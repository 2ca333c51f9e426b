"""Cancelling a command beside other agents: how long its processes live on, one of them in a session of its own."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from functools import partial
from itertools import count

import psutil

from bench.kit import Benchmark, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from bench.peers.agent import Agent, AgentFailedError, Program
from bench.peers.contest import able, bounded, in_turns, programs, row, started, unable
from tests.support.workspace.processes import wait_gone

GONE_MS = 5.0
PROCESSES = 2
START_S = 20.0
LOOK_S = 0.02
LEFT_S = 2.0
SLEEP_S = 900
"""Each command sleeps a second longer than the one before, and so can be told from all others."""


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Cancel a command that sleeps twice, in each agent, in turn."""
    contestants = programs(shop)
    chosen = able(contestants, "cancel")
    async with shop.lab() as lab:
        seconds = count(SLEEP_S + os.getpid() % 1000)
        by_name = {one.name: one for one in chosen}
        async with started(lab, chosen) as agents:
            ways = {
                name: partial(_gone_ms, lab, by_name[name], agent, seconds)
                for name, agent in agents.items()
            }
            figures = await in_turns(plan.rounds, ways) | unable(contestants, "cancel")
    what = "cancel to all processes gone, one of them by `setsid`"
    return [bounded(row(what, "ms", figures), GONE_MS)]


async def _gone_ms(lab: Lab, program: Program, agent: Agent, seconds: "count[int]") -> float:
    argument = str(next(seconds))
    call = program.bash(f"setsid sleep {argument} & sleep {argument}")
    await agent.open()
    calls = [{"name": call.name, "arguments": dict(call.arguments), "pieces": 1}]
    lab.provider.script([{"tool_calls": calls}, answer_of(1)])
    await agent.begin()
    pids = await _sleeping(argument)
    try:
        began = time.monotonic()
        await agent.cancel()
        left = await asyncio.to_thread(wait_gone, pids, timeout_s=LEFT_S)
        gone = time.monotonic()
        await agent.over()
    finally:
        for pid in _sleepers(argument):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if left:
        message = f"{len(left)} of {len(pids)} still ran after {LEFT_S:g} s"
        raise AgentFailedError(message)
    return (gone - began) * 1000


async def _sleeping(argument: str) -> set[int]:
    deadline = time.monotonic() + START_S
    while len(found := _sleepers(argument)) < PROCESSES:
        if time.monotonic() > deadline:
            message = f"{len(found)} of {PROCESSES} processes started"
            raise AgentFailedError(message)
        await asyncio.sleep(LOOK_S)
    return found


def _sleepers(argument: str) -> set[int]:
    found: set[int] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline() == ["sleep", argument]:
                found.add(process.pid)
    return found


BENCHMARK = Benchmark(
    name="peer-cancel", title="Cancelling, beside other agents", run=measure, with_peers=True
)
