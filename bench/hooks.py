"""What hooks cost: a turn with 20 extensions of 10 hooks each, beside the same turn without any."""

from collections.abc import Callable
from time import process_time

from agent_core.hooks import (
    ContextBuilt,
    GoOn,
    Hook,
    HookInput,
    HookOutcome,
    HookTable,
    MessageBegun,
    MessageOver,
    RequestBuilt,
    ToolBegun,
    ToolCalled,
    ToolOver,
    ToolReturned,
    TurnBegun,
    TurnOver,
)
from bench.kit import Bar, Benchmark, Peer, Plan, Row
from bench.lab import Workshop
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import echo

EXTENSIONS = 20
POINTS: tuple[type[HookInput[HookOutcome]], ...] = (
    TurnBegun,
    ContextBuilt,
    RequestBuilt,
    MessageBegun,
    MessageOver,
    ToolCalled,
    ToolBegun,
    ToolReturned,
    ToolOver,
    TurnOver,
)
TURNS = 2
"""Of one prompt: a tool call, and the answer to its result."""
PROMPTS = 40


async def measure(plan: Plan, lab: Workshop) -> list[Row]:
    """Time prompts by turns with hooks and without, and give the difference."""
    del lab
    added: list[float] = []
    without: list[float] = []
    for _ in range(plan.rounds):
        plain = await _turn_ms(HookTable)
        hooked = await _turn_ms(_table)
        without.append(plain)
        added.append(hooked - plain)
    return [
        Row(
            what=f"{EXTENSIONS} extensions with {len(POINTS)} hooks each, added to a turn",
            unit="ms CPU",
            ours=tuple(added),
            peer=Peer(name="the same turn without hooks", samples=tuple(without)),
            bar=Bar(of="median", at_most=1.0),
            note=f"median of {PROMPTS} prompts of {TURNS} turns, one tool call each",
        )
    ]


async def _turn_ms(table: Callable[[], HookTable]) -> float:
    turns = [turn for _ in range(PROMPTS + 5) for turn in (call("echo", {"text": "x"}), say("ok"))]
    async with bench(ScriptedModel(turns), tools=[echo()], hooks=table()) as b:
        for _ in range(5):
            _ = await _prompt_ms(b)
        samples = sorted([await _prompt_ms(b) for _ in range(PROMPTS)])
    return samples[len(samples) // 2] / TURNS


async def _prompt_ms(b: Bench) -> float:
    begun = process_time()
    await b.session.prompt("go")
    await b.session.wait_idle()
    _ = b.reader.take_now()
    return (process_time() - begun) * 1000


def _table() -> HookTable:
    table = HookTable()
    for number in range(EXTENSIONS):
        for point in POINTS:
            table.add(Hook(f"extension-{number}", _looks), at=point)
    return table


async def _looks(value: object, context: object) -> GoOn:
    del value, context
    return GoOn()


BENCHMARK = Benchmark(name="hooks", title="Hooks", run=measure)
