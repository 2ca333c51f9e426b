"""The models there are in a workspace, those that extensions bring among them, without a session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agent_core.assembly.config.workspace_config import load_workspace_config
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.models.loader import load_models
from agent_core.assembly.request import SessionRequest
from agent_core.kernel.values import Value
from agent_core.providers.http.client import HttpPool
from agent_core.providers.registry import ModelRegistry


class AvailableModels(Value, frozen=True, kw_only=True):
    """Models available to a session of the request."""

    registry: ModelRegistry
    notices: tuple[str, ...]
    """Problems of the extensions, one sentence each."""


@asynccontextmanager
async def available_models(request: SessionRequest) -> AsyncGenerator[AvailableModels]:
    """Load the extensions and read what models there are; code and connections are let go with the context.

    Raises:
        WorkspaceMissing: The workspace is no folder.
    """
    config = await load_workspace_config(request)
    extensions = SessionExtensions(request, config, config.settings.values)
    pool = HttpPool(clock=request.clock)
    try:
        await extensions.load()
        models = await load_models(
            paths=config.paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            roots=(config.root,),
            redactor=request.redactor,
            brought=extensions.models,
        )
        yield AvailableModels(registry=models.registry, notices=extensions.notices)
    finally:
        extensions.close()
        await pool.aclose()
