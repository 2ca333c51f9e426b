"""What many workspaces weigh: one daemon, a hundred editors, each with a folder and a session of its own."""

from contextlib import AsyncExitStack
from pathlib import Path

from bench.kit import Bar, Benchmark, Peer, Plan, Row
from bench.lab import Lab, Workshop
from tests.support.clients.daemons import DaemonProcess, daemon_process, hello
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import VSCODE
from tests.support.workspace.processes import resident_bytes
from tiller_server.daemon.paths import socket_path

MIB = 1024 * 1024
WORKSPACES = 100
BASE_RATIO = 1.6
EACH_MIB = 1.0


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Open a session in each of a hundred folders, each over its own connection, and weigh the daemon."""
    weighed: list[float] = []
    each: list[float] = []
    bare: list[float] = []
    async with shop.lab() as lab:
        for _ in range(plan.rounds):
            async with lab.bare_pygls() as client:
                bare.append(resident_bytes(client.pid) / MIB)
            async with daemon_process(lab.env) as daemon:
                one = await weight(lab, daemon, count=1)
                all_ = await weight(lab, daemon, count=WORKSPACES)
            weighed.append(all_)
            each.append((all_ - one) / (WORKSPACES - 1))
    allowed = BASE_RATIO * min(bare) + WORKSPACES * EACH_MIB
    return [
        Row(
            what=f"RSS of the daemon with {WORKSPACES} editors, a workspace and a session each",
            unit="MiB",
            ours=tuple(weighed),
            peer=Peer(name="bare pygls after initialize", samples=tuple(bare)),
            bar=Bar(of="median", at_most=allowed),
            note=f"allowed are {BASE_RATIO} times bare pygls and {EACH_MIB:g} MiB each",
        ),
        Row(what="each further editor with its session", unit="MiB", ours=tuple(each)),
    ]


async def weight(lab: Lab, daemon: DaemonProcess, *, count: int) -> float:
    """Return the memory of the daemon in MiB while so many editors are connected."""
    async with AsyncExitStack() as stack:
        for number in range(count):
            folder = lab.workspace / f"w{number}"
            folder.mkdir(exist_ok=True)
            client = await RawClient.connect(Path(socket_path(lab.env)), hello=hello(lab.env))
            await stack.enter_async_context(client)
            await client.initialize(VSCODE, root=folder)
            await client.request("agent/session/open", {})
        return resident_bytes(daemon.pid) / MIB


BENCHMARK = Benchmark(name="workspaces", title="Many workspaces", run=measure)
