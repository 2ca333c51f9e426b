"""A task uses the servers of the session that gave it, and starts none."""

import shlex
import sys
from pathlib import Path

from tests.support.mcp.mcp_office import GOOD, McpOffice, call


async def test_a_task_calls_a_tool_of_the_server_that_runs(
    office: McpOffice, tmp_path: Path
) -> None:
    starts = tmp_path / "starts.txt"
    server = f"echo started >> {starts}; exec {shlex.quote(sys.executable)} {GOOD}"
    office.servers(shop={"command": "sh", "args": ["-c", server]})
    look = call("mcp__shop__look", word="twice")
    before = len(office.lab.requests)
    order = {"description": "look", "prompt": "Look.", "preset": "general"}
    async with office.session(trusted=True) as session:
        results = await office.run(
            session,
            look,
            call("task", **order),
            look,
            {"text": "It said it."},
            servers="allowSession",
            calls="allowOnce",
        )
    assert "you said twice" in results[0]
    assert "It said it." in results[1]
    assert "mcp__shop__look" in office.declared(before + 2)
    assert starts.read_text(encoding="utf-8") == "started\n"
