"""Starts beside other agents: the language server, the one-shot command, and the options that only print."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from functools import partial

from bench.kit import Benchmark, Plan, Row
from bench.lab import Command, Lab, MeasurementFailedError, Workshop, answer_of
from bench.peers.agent import Program
from bench.peers.contest import (
    OURS,
    Figures,
    Way,
    bounded,
    in_turns,
    programs,
    row,
)
from bench.run_started import requested_ms
from bench.shim import bare_start_ms, cold_start_ms, start_shim
from tests.support.clients.shims import end_daemon

LSP_TO_CODEX = 1.0
LSP_TO_PYGLS = 1.0
RUN_TO_PI = 0.35
RUN_TO_CODEX = 1.3
PRINT_S = 0.06
FOREVER = -1
PYGLS = "bare pygls"
NO_COMMAND = "no command"


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start everything in turn; the first start of each is not counted."""
    contestants = programs(shop)
    async with shop.lab() as lab:
        lab.provider.script([answer_of(1, repeat=FOREVER)])
        try:
            rows = await _servers(plan, lab, contestants)
            rows += await _commands(plan, lab, contestants)
        finally:
            await asyncio.to_thread(end_daemon, lab.env)
        return [
            *rows,
            *[await _printed(plan, lab, contestants, o) for o in ("--version", "--help")],
        ]


async def _servers(plan: Plan, lab: Lab, contestants: list[Program]) -> list[Row]:
    async def ready_ms(program: Program) -> float:
        async with program.start(lab) as agent:
            return agent.ready_s * 1000

    async def warm_ms() -> float:
        return (await start_shim(lab))[0]

    peers: dict[str, Way] = {
        one.name: partial(ready_ms, one) for one in contestants if one.name != OURS
    }
    peers[PYGLS] = partial(bare_start_ms, lab)
    warm = await _warmed(plan.starts, {**peers, OURS: warm_ms})
    cold = await _warmed(plan.starts, {PYGLS: peers[PYGLS], OURS: partial(cold_start_ms, lab)})
    what = "`tiller lsp`, start to `initialize` answered"
    return [
        row(f"{what}, warm daemon", "ms", warm, against="codex", at_most=LSP_TO_CODEX),
        row(f"{what}, no daemon yet", "ms", cold, against=PYGLS, at_most=LSP_TO_PYGLS),
    ]


async def _commands(plan: Plan, lab: Lab, contestants: list[Program]) -> list[Row]:
    commands = {one.name: one.one_shot(lab) for one in contestants}
    no_command = {
        name: Figures(why_none=NO_COMMAND) for name, one in commands.items() if one is None
    }
    ways: dict[str, Way] = {
        name: partial(requested_ms, lab, one) for name, one in commands.items() if one is not None
    }
    warm_way = ways[OURS]

    async def cold_ms() -> float:
        await asyncio.to_thread(end_daemon, lab.env)
        return await warm_way()

    cold = await _warmed(plan.starts, {**ways, OURS: cold_ms})
    await start_shim(lab)  # the daemon
    warm = await _warmed(plan.starts, ways)
    what = "one-shot run, start to request at the model"
    return [
        row(f"{what}, no daemon", "ms", cold | no_command, against="pi", at_most=RUN_TO_PI),
        row(f"{what}, warm daemon", "ms", warm | no_command, against="codex", at_most=RUN_TO_CODEX),
    ]


async def _printed(plan: Plan, lab: Lab, contestants: list[Program], option: str) -> Row:
    commands = {one.name: one.command_line(lab, option) for one in contestants}
    ways: dict[str, Way] = {
        name: partial(_cpu_s, lab, one) for name, one in commands.items() if one is not None
    }
    figures = await _warmed(plan.starts, ways)
    return bounded(row(f"`tiller {option}`, CPU", "s", figures), PRINT_S)


async def _warmed(rounds: int, ways: Mapping[str, Way]) -> dict[str, Figures]:
    """Measure in turn, without the first start of each."""
    figures = await in_turns(rounds + 1, ways)
    return {name: Figures(one.samples[1:], one.why_none) for name, one in figures.items()}


async def _cpu_s(lab: Lab, command: Command) -> float:
    """Return user and system time of a command and of all that it waited for."""

    def run() -> float:
        process = subprocess.Popen(  # noqa: S603 - a program that is measured
            list(command.argv),
            env=dict(command.env),
            cwd=lab.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            message = f"{command.argv[-1]} ended with {process.returncode}"
            raise MeasurementFailedError(message)
        return used.ru_utime + used.ru_stime

    return await asyncio.to_thread(run)


BENCHMARK = Benchmark(
    name="peer-starts", title="Starts, beside other agents", run=measure, with_peers=True
)
