"""What a script may import from agent_core changes only on purpose."""

import ast
import subprocess
import sys

import agent_core
from tests.support.harness.shared import ROOT
from tests.support.harness.sources import CODE, sources

PUBLIC = (
    "AgentSession",
    "CancelResult",
    "Event",
    "EventEnvelope",
    "File",
    "Files",
    "Hook",
    "HookTable",
    "Image",
    "Processes",
    "Receipt",
    "RunResult",
    "SessionSnapshot",
    "SessionStore",
    "Text",
    "TillerError",
    "Tool",
    "ToolContext",
    "ToolResult",
    "ToolSpec",
    "Workspace",
    "create_session",
    "export_session",
)


def test_agent_core_exports_exactly_these_names() -> None:
    assert tuple(agent_core.__all__) == tuple(sorted(PUBLIC))


def test_the_names_are_listed_before_they_are_used() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "import agent_core; print(*dir(agent_core))"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert set(PUBLIC) <= set(shown.stdout.split())


def test_every_exported_name_is_there_and_documented() -> None:
    missing = [name for name in PUBLIC if not hasattr(agent_core, name)]
    silent = [
        name for name in PUBLIC if not (getattr(agent_core, name, None).__doc__ or "").strip()
    ]
    assert (missing, silent) == ([], [])


def test_every_module_opens_with_what_it_is_for() -> None:
    silent = [
        source.path
        for source in sources(*CODE)
        if source.text.strip() and not ast.get_docstring(source.tree)
    ]
    assert silent == []
