"""The models and accounts as commands need them, without a session."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.assembly.known_models import known_models
from agent_core.assembly.request import SessionRequest
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from tiller_server.cli.environment import Environment


@asynccontextmanager
async def open_registry(
    paths: AppPaths, environment: Environment, *, workspace: Path | None = None
) -> AsyncGenerator[ModelRegistry]:
    """Read what models there are, those of extensions too; what is wrong with these is said on standard error.

    Args:
        paths: Where the user's files lie.
        environment: Where keys are looked up.
        workspace: Whose extensions count beside the user's, where it is trusted; None: that of the current folder.

    Raises:
        WorkspaceMissing: The workspace is no folder.
    """
    request = SessionRequest(workspace=workspace or Path(), env=environment.variables, paths=paths)
    async with known_models(request) as known:
        for problem in known.told:
            _ = sys.stderr.write(f"{problem}\n")
        yield known.registry
