"""Both ways in which the tools search: with ripgrep, and without it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NoReturn

from agent_core.kernel.errors import FileMissing
from agent_core.workspace import Workspace

Engine = Literal["ripgrep", "builtin"]
ENGINES: tuple[Engine, ...] = ("ripgrep", "builtin")


class NoPrograms:
    """A place where files are but no program can be started."""

    async def start(
        self, argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], **more: object
    ) -> NoReturn:
        del cwd, env, more
        message = f"Program not found: {argv[0]}"
        raise FileMissing(message)

    async def before_start(self) -> None:
        return None


def searching_with(engine: Engine, workspace: Workspace) -> Workspace:
    """Give a workspace in which searches go this way."""
    if engine == "ripgrep":
        return workspace
    return replace(workspace, processes=NoPrograms())
