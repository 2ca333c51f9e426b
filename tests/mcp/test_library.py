"""The library is an extra: it is loaded when it is needed, never before, and its absence is told with what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.mcp.adapters.library import load
from agent_core.mcp.port import ServerFailed

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
import agent_core.assembly.factory, tiller_server.lsp.app, tiller_server.cli.doctor.mcp
names = {name.partition(".")[0] for name in sys.modules}
print(sorted(names & {"mcp", "mcp_types", "httpx2", "jsonschema"}))
"""


async def test_a_library_that_is_not_there_is_told_with_what_to_do() -> None:
    with pytest.raises(ServerFailed, match=r"pip install 'tillerd\[mcp\]'"):
        await load("mcp_of_another_world")


def test_nothing_of_it_is_loaded_before_a_server_is_needed(child_env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=child_env,
    )
    assert done.stdout.strip() == "[]"
