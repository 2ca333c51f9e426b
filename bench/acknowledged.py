"""How long a prompt waits for its acknowledgement: the first one, which loads the agent, and those after it."""

from bench.client import Client, Timed, ended
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import Lab, Workshop, answer_of
from tests.support.lsp.lsp_profiles import VSCODE
from tests.support.lsp.lsp_subscription import Subscription

MAX_MS = 50.0
FOREVER = -1
PEER = "pygls, handler that does nothing"


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Time first prompts in fresh servers, then many in one server."""
    async with shop.lab() as lab:
        lab.provider.script([answer_of(3, repeat=FOREVER)])
        await _first(lab)
        first, bare = await alternate(plan.starts, lambda: _first(lab), lambda: _first_bare(lab))
        return [
            Row(
                what="`initialize` answered to first prompt acknowledged",
                unit="ms",
                ours=tuple(first),
                peer=Peer(name=PEER, samples=tuple(bare)),
                note="the client does not wait: loads the agent and opens the session",
            ),
            Row(
                what="first prompt acknowledged, agent loaded",
                unit="ms",
                ours=tuple([await _first_loaded(lab) for _ in range(plan.starts)]),
                note="opens the session; the agent was loaded while the editor opened its documents",
            ),
            await _warm(plan, lab),
        ]


async def _first(lab: Lab) -> float:
    async with lab.tiller(None) as client:
        introduced = await client.introduce(VSCODE, lab.workspace)
        taken = await client.prompt()
        return (taken.answered - introduced) * 1000


async def _first_loaded(lab: Lab) -> float:
    async with lab.tiller(None) as client:
        await client.introduce(VSCODE, lab.workspace)
        await client.timed("agent/status")
        return (await client.prompt()).took_s * 1000


async def _first_bare(lab: Lab) -> float:
    async with lab.answering_pygls() as client:
        introduced = client.arrived_at[0]
        return ((await client.prompt()).answered - introduced) * 1000


async def _warm(plan: Plan, lab: Lab) -> Row:
    ours: list[float] = []
    bare: list[float] = []
    async with lab.tiller() as client, lab.answering_pygls() as other:
        for _ in range(plan.rounds):
            await client.open_session()
            stream = await client.follow()
            await _prompt(client, stream)
            for _ in range(plan.prompts):
                ours.append((await _prompt(client, stream)).took_s * 1000)
                bare.append((await other.prompt()).took_s * 1000)
            await stream.unsubscribe()
    return Row(
        what="prompt acknowledged, warm",
        unit="ms",
        ours=tuple(ours),
        peer=Peer(name=PEER, samples=tuple(bare)),
        bar=Bar(of="p95", at_most=MAX_MS),
        note="each sent after the run before it had ended; the words are in the session file first",
    )


async def _prompt(client: Client, stream: Subscription) -> Timed:
    taken = await client.prompt()
    await ended(stream, taken)
    return taken


BENCHMARK = Benchmark(name="acknowledged", title="Prompt acknowledged", run=measure)
