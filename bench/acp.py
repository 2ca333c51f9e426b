"""What the Agent Client Protocol costs beside LSP: `initialize`, and a prompt until the model's request is on the wire."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import median
from typing import Final

from bench.client import Client, ended
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import START_S, Lab, MeasurementFailedError, Workshop, answer_of
from tests.support.acp.client import LINE_BYTES, AcpClient
from tests.support.clients.shims import end_daemon
from tests.support.lsp.lsp_profiles import VSCODE
from tests.support.lsp.lsp_subscription import Subscription

INITIALIZE_MS: Final = 50.0
MORE_MS: Final = 1.0
FOREVER: Final = -1


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Start clients on a warm daemon, and prompt in turn over both protocols in one daemon."""
    async with shop.lab() as lab:
        lab.provider.script([answer_of(3, repeat=FOREVER)])
        try:
            async with lab.shim() as editor:  # starts the daemon
                await editor.introduce(VSCODE, lab.workspace)
                await _initialized_ms(lab)
                started = [await _initialized_ms(lab) for _ in range(plan.starts * 3)]
                return [
                    Row(
                        what="spawn of `tiller acp` to `initialize` answered, warm daemon",
                        unit="ms",
                        ours=tuple(started),
                        bar=Bar(of="median", at_most=INITIALIZE_MS),
                    ),
                    *await _prompts(plan, lab, editor),
                ]
        finally:
            end_daemon(lab.env)


@asynccontextmanager
async def _acp(lab: Lab) -> AsyncGenerator[AcpClient]:
    process = await asyncio.create_subprocess_exec(
        *lab.tiller_argv("acp"),
        env=lab.env,
        cwd=lab.workspace,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    if process.stdin is None or process.stdout is None:
        raise MeasurementFailedError("tiller acp has no pipes")
    client = AcpClient(process.stdout, process.stdin)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.read())
        try:
            yield client
        finally:
            process.stdin.close()
            async with asyncio.timeout(START_S):
                await process.wait()


async def _initialized_ms(lab: Lab) -> float:
    began = time.monotonic()
    async with _acp(lab) as client:
        await client.initialize()
        return (time.monotonic() - began) * 1000


async def _prompts(plan: Plan, lab: Lab, editor: Client) -> list[Row]:
    ours: list[float] = []
    theirs: list[float] = []
    async with _acp(lab) as client:
        await client.initialize()
        for _ in range(plan.rounds):
            session = await client.new(lab.workspace)
            await editor.open_session()
            stream = await editor.follow()
            await _over_acp(lab, client, session)
            await _over_lsp(lab, editor, stream)
            over_acp, over_lsp = await alternate(
                plan.prompts,
                lambda session=session: _over_acp(lab, client, session),
                lambda stream=stream: _over_lsp(lab, editor, stream),
            )
            ours += over_acp
            theirs += over_lsp
            await stream.unsubscribe()
            await client.request("session/close", {"sessionId": session})
    more = [one - other for one, other in zip(ours, theirs, strict=True)]
    return [
        Row(
            what="`session/prompt` of ACP to the model's request",
            unit="ms",
            ours=tuple(ours),
            peer=Peer(name="`agent/prompt` of LSP, same daemon", samples=tuple(theirs)),
        ),
        Row(
            what="the same, more than LSP, pair by pair",
            unit="ms",
            ours=tuple(more),
            bar=Bar(of="median", at_most=MORE_MS),
            note=f"{len(more)} pairs; difference of the medians {median(ours) - median(theirs):+.2f}",
        ),
    ]


async def _over_acp(lab: Lab, client: AcpClient, session: str) -> float:
    sent = time.monotonic()
    answer = await client.prompt(session, "go on")
    if answer.get("result", {}).get("stopReason") != "end_turn":
        message = f"a prompt was answered with {answer}"
        raise MeasurementFailedError(message)
    return (_arrived(lab) - sent) * 1000


async def _over_lsp(lab: Lab, editor: Client, stream: Subscription) -> float:
    taken = await editor.prompt()
    await ended(stream, taken)
    return (_arrived(lab) - taken.sent) * 1000


def _arrived(lab: Lab) -> float:
    # The provider's monotonic clock is ours: it belongs to the machine.
    return float(lab.provider.log(bodies="without")[-1]["at"])


BENCHMARK = Benchmark(name="acp", title="The Agent Client Protocol", run=measure)
