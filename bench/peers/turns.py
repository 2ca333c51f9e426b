"""Turns beside other agents: from the prompt to the request at the model, and what a tool call adds."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.kit import Benchmark, Plan, Row
from bench.lab import Lab, Workshop, answer_of
from bench.peers.agent import Agent, AgentFailedError, Call, Program, turn
from bench.peers.contest import (
    OURS,
    Figures,
    Requests,
    Way,
    able,
    bounded,
    in_turns,
    programs,
    requested_ms,
    row,
    started,
    unable,
)

TO_PI = 0.8
TO_PI_LONG = 0.4
READ_TO_PI = 0.7
BASH_TO_PI = 1.0
CONTAINED_MS = 6.0
CALLS_WARM = 3
CONTAINED = f"{OURS} contained"
FOREVER = -1
SMALL_FILE = "".join(f"line {number} of a small file\n" for number in range(40))
NET = "wall time of a turn, less the provider's own"


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Prompt without and with a long history, then call tools."""
    contestants = programs(shop)
    async with shop.lab() as lab:
        rows = [*await _short(plan, lab, contestants), await _long(plan, lab, contestants)]
    async with shop.lab() as lab, shop.lab() as other:
        for number in range(plan.calls):
            (lab.workspace / f"small-{number}.txt").write_text(SMALL_FILE, encoding="utf-8")
        rows.append(await _read(plan, lab, contestants))
        # Commands in a workspace that is the user's home cannot be contained.
        home = replace(other, env={**other.env, "HOME": str(other.workspace)})
        return [*rows, *await _bash(plan, home, lab, contestants)]


async def _short(plan: Plan, lab: Lab, contestants: list[Program]) -> list[Row]:
    lab.provider.script([answer_of(3, repeat=FOREVER)])
    requests = Requests(lab)

    async def in_new_session(agent: Agent) -> float:
        await agent.open()
        return await requested_ms(agent, requests)

    async with started(lab, contestants) as agents:
        for agent in agents.values():
            await in_new_session(agent)
        new = {name: partial(in_new_session, agent) for name, agent in agents.items()}
        first = await in_turns(plan.rounds * 3, new)
        same = {name: partial(requested_ms, agent, requests) for name, agent in agents.items()}
        later = await in_turns(plan.rounds * 3, same)
    what = "prompt to request at the model"
    return [
        row(f"{what}, new session", "ms", first, against="pi", at_most=TO_PI),
        row(f"{what}, a few short turns", "ms", later, against="pi", at_most=TO_PI),
    ]


async def _long(plan: Plan, lab: Lab, contestants: list[Program]) -> Row:
    chosen = able(contestants, "history")
    stored = {one.name: await one.store(lab, plan.history) for one in chosen}
    lab.provider.script([answer_of(3, repeat=FOREVER)])
    requests = Requests(lab)
    async with started(lab, chosen) as agents:
        for name, agent in agents.items():
            await agent.open(stored[name])
        ways = {name: partial(requested_ms, agent, requests) for name, agent in agents.items()}
        figures = await in_turns(plan.rounds * 3, ways)
    what = f"prompt to request at the model, after {plan.history:,} messages"
    figures |= unable(contestants, "history")
    return row(what, "ms", figures, against="pi", at_most=TO_PI_LONG)


async def _read(plan: Plan, lab: Lab, contestants: list[Program]) -> Row:
    # Calls that repeat one another would end the run.
    loops = {
        one.name: Loop(one, lab, [one.read(f"small-{place}.txt") for place in range(plan.calls)])
        for one in able(contestants, "read")
    }
    figures = await _looped(plan, loops) | unable(contestants, "read")
    what = "a turn with one `read`"
    return row(what, "ms", figures, against="pi", at_most=READ_TO_PI, note=NET)


async def _bash(plan: Plan, home: Lab, lab: Lab, contestants: list[Program]) -> list[Row]:
    """Run commands in all, uncontained; ours also contains them, which no peer does here."""
    loops = {
        one.name: Loop(one, home, [one.bash(f"true {place}") for place in range(plan.calls)])
        for one in able(contestants, "bash")
    }
    loops[CONTAINED] = replace(loops[OURS], lab=lab)
    figures = await _looped(plan, loops) | unable(contestants, "bash")
    contained = figures.pop(CONTAINED)
    pairs = zip(contained.samples, figures[OURS].samples, strict=True)
    added = {OURS: Figures(tuple(more - less for more, less in pairs))}
    what = "a turn with one `bash`, not contained"
    return [
        row(what, "ms", figures, against="pi", at_most=BASH_TO_PI, note=NET),
        bounded(row("containment of one `bash`, added to its turn", "ms", added), CONTAINED_MS),
    ]


@dataclass(frozen=True, slots=True)
class Loop:
    """A run that makes calls one after another."""

    program: Program
    lab: Lab
    calls: list[Call]


async def _looped(plan: Plan, loops: Mapping[str, Loop]) -> dict[str, Figures]:
    async with AsyncExitStack() as stack:
        ways: dict[str, Way] = {}
        for name, loop in loops.items():
            agent = await stack.enter_async_context(loop.program.start(loop.lab))
            requests = Requests(loop.lab)
            await _loop_ms(loop.lab, agent, requests, loop.calls[:CALLS_WARM])
            ways[name] = partial(_loop_ms, loop.lab, agent, requests, loop.calls)
        return await in_turns(plan.rounds, ways)


async def _loop_ms(lab: Lab, agent: Agent, requests: Requests, calls: list[Call]) -> float:
    """Return the milliseconds a call of one run that makes them all, one after another."""
    await agent.open()
    lab.provider.script([*(_turn_of(call) for call in calls), answer_of(1)])
    requests.new()
    taken = await turn(agent)
    log = requests.new()
    if len(log) != len(calls) + 1:
        message = f"{len(log)} requests for {len(calls)} calls"
        raise AgentFailedError(message)
    provider_s = sum((one["ended_at"] or taken.ended) - one["head_at"] for one in log)
    return (taken.ended - taken.sent - provider_s) * 1000 / len(calls)


def _turn_of(call: Call) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": dict(call.arguments), "pieces": 1}]
    return {"tool_calls": calls, "usage": {"input": 10, "output": 10}}


BENCHMARK = Benchmark(
    name="peer-turns", title="Turns, beside other agents", run=measure, with_peers=True
)
