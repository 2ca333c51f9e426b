"""`kill -9` of the daemon ends an external agent, also one that ends by nothing else."""

import shutil

import pytest

from tests.daemon.conftest import ground
from tests.support.acp.agent_office import liar
from tests.support.clients.daemons import daemon_process, editor
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.workspace.processes import processes_with, wait_gone

__all__ = ["ground"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap ends agents with the daemon"),
]


async def test_no_agent_outlives_the_daemon(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, externalAgents={"robot": liar("never ends")})
    order = {"description": "do it", "prompt": "Do it.", "preset": "robot"}
    ground.provider.script([{**calls(("task", order)), "when": "go"}, says("never")])
    async with daemon_process(ground.env) as daemon, await editor(ground.env) as client:
        await client.initialize(PANEL, root=ground.root)
        _ = await client.request("agent/session/open", {"session": "new"})
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        _ = await stream.wait(type="task.updated")
        agent = processes_with("never ends", below=daemon.pid, at_least=1)
        daemon.kill()
        await daemon.ended()
    assert wait_gone(agent) == set()
