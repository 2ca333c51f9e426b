"""Tiller is an external agent of Tiller: `tiller acp` works on a task of a session."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.acp.agent_office import AgentOffice
from tests.support.mcp.mcp_office import call

pytestmark = pytest.mark.skipif(
    find_spec("tiller_server.acp") is None, reason="this version has no `tiller acp`"
)
TILLER = Path(sys.executable).parent / "tiller"


async def test_tiller_works_on_a_task_of_tiller(office: AgentOffice) -> None:
    variables = [f"{name}={value}" for name, value in office.folder.dirs.variables().items()]
    office.agents(robot={"command": "env", "args": [*variables, str(TILLER), "acp"]})
    task = call("task", description="do it", prompt="Write it.", preset="robot")
    write = call("write", path="inner.txt", content="from inside\n")
    async with office.session(trusted=True) as session:
        (report,) = await office.run(session, task, write, {"text": "The inner one wrote it."})
        changed = (await session.changes.list()).files
    assert report == "Task t1 (do it) completed.\nIts report:\nThe inner one wrote it."
    assert [one.path.name for one in changed] == ["inner.txt"]
