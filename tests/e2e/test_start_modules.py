"""`tiller run` imports what its first request needs, and the rest when it is used."""

import os
import subprocess
import sys

import pytest

from tests.support.clients.server import Ground, says
from tests.support.harness.shared import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.starts, pytest.mark.timeout(60)]

MOST_MODULES_OF_OURS = 300
"""Modules of the core and of the front end at the end of a run without tool calls. A count, since times are noisy here."""

UNUSED = (
    "agent_core.mcp.adapters.library",
    "agent_core.storage.adapters.scan",
    "agent_core.telemetry",
    "agent_core.tools.builtin.read.image",
    "agent_core.workspace.files.disk.regular_files",
    "agent_core.workspace.permissions.policy.decision",
    "agent_core.workspace.permissions.shell.strict_parser",
    "agent_core.workspace.processes.launch",
    "tiller_server.cli.terminal.permission_prompt",
    "tiller_server.lsp",
)
PROBE = """
import atexit, os, sys
from pathlib import Path
atexit.register(lambda: Path(os.environ["MODULES"]).write_text("\\n".join(sys.modules), encoding="utf-8"))
from tiller_server.cli.entry import main
sys.exit(main(["run", "hello"]))
"""


def test_a_run_without_tool_calls_imports_no_more_than_it_needs(ground: Ground) -> None:
    ground.provider.script([says("Hello there")])
    listing = ground.root.parent / "modules.txt"
    env = {
        **ground.env,
        "MODULES": str(listing),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'server'}",
    }
    argv = [sys.executable, "-P", "-c", PROBE]
    ran = subprocess.run(
        argv, cwd=ground.root, env=env, input=b"", capture_output=True, timeout=40, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, b"Hello there\n"), ran
    names = listing.read_text("utf-8").split("\n")
    packages = {name.partition(".")[0] for name in names}
    assert packages & {"opentelemetry", "click", "pygments", "html_to_markdown"} == set()
    ours = {name for name in names if name.partition(".")[0] in {"agent_core", "tiller_server"}}
    assert ours & {*UNUSED} == set(), "import these where they are used first"
    message = f"{len(ours)} modules of ours are imported, {MOST_MODULES_OF_OURS} are allowed"
    assert len(ours) <= MOST_MODULES_OF_OURS, f"{message}: import the new ones where they are used"
