"""The models and accounts as commands need them, without a session."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.assembly.extensions import available_models
from agent_core.assembly.request import SessionRequest
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from tiller_server.cli.environment import Environment


@asynccontextmanager
async def open_registry(
    paths: AppPaths, environment: Environment, *, workspace: Path | None = None
) -> AsyncGenerator[ModelRegistry]:
    """Read the available models, those of extensions included; problems of extensions go to standard error.

    Args:
        paths: Folders of the user's files.
        environment: Environment in which keys are looked up.
        workspace: Workspace whose extensions count beside the user's, when it is trusted; None: the current folder.

    Raises:
        WorkspaceMissing: The workspace is no folder.
    """
    request = SessionRequest(workspace=workspace or Path(), env=environment.variables, paths=paths)
    async with available_models(request) as models:
        for problem in models.notices:
            _ = sys.stderr.write(f"{problem}\n")
        yield models.registry
