"""Plain commands of git find no program of the workspace: the user's own settings may start some."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.kernel.errors import AccessRefused
from agent_core.tools.command import BashCommand
from agent_core.workspace import NO_NEEDS, Process, Workspace
from agent_core.workspace.permissions.call_permission import Needs
from tests.support.workspace.memory_files import MemoryFiles

SYSTEM = "/usr/bin:/bin"


class NotedProcesses:
    """Notes the PATH that a process would have been started with."""

    def __init__(self) -> None:
        self.path = ""

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        self.path = env["PATH"]
        message = "enough"
        raise AccessRefused(message)

    async def before_start(self) -> str | None:
        return None


@pytest.mark.parametrize(
    ("command", "config", "keeps"),
    [
        ("git commit -m x", "", False),
        ("git add . && git commit -m x", "", False),
        ("git commit -m x", "[core]\n\thooksPath = hooks\n", True),
        ("git status", "", True),
        ("git commit -m x; make", "", True),
        ("make", "", True),
    ],
)
async def test_a_line_that_writes_data_of_git_has_the_path_of_the_system(
    tmp_path: Path, command: str, config: str, keeps: bool
) -> None:
    root = tmp_path
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(config, "utf-8")
    own = f"{root}/.venv/bin"
    processes = NotedProcesses()
    workspace = Workspace(
        roots=(root,),
        files=MemoryFiles((root,), root),
        processes=processes,
        env={"PATH": f"{SYSTEM}:{own}"},
    )
    tool = BashCommand(workspace, options={}, scratch="", show=lambda _: None)
    with pytest.raises(AccessRefused):
        await tool.run(command)
    assert processes.path == (f"{SYSTEM}:{own}" if keeps else SYSTEM)
