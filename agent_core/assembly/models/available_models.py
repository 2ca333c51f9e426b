"""The models there are in a workspace, those that extensions bring among them, without a session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agent_core.assembly.config.workspace_config import lay_ground
from agent_core.assembly.extensions import Extending
from agent_core.assembly.models.loader import load_models
from agent_core.assembly.request import SessionRequest
from agent_core.kernel.values import Value
from agent_core.providers.http.client import HttpPool
from agent_core.providers.registry import ModelRegistry


class KnownModels(Value, frozen=True, kw_only=True):
    """Models available to a session of the request."""

    registry: ModelRegistry
    told: tuple[str, ...]
    """Problems of the extensions, one sentence each."""


@asynccontextmanager
async def known_models(request: SessionRequest) -> AsyncGenerator[KnownModels]:
    """Load the extensions and read what models there are; code and connections are let go with the context.

    Raises:
        WorkspaceMissing: The workspace is no folder.
    """
    ground = await lay_ground(request)
    extending = Extending(request, ground, ground.settings.values)
    pool = HttpPool(clock=request.clock)
    try:
        await extending.load()
        models = await load_models(
            paths=ground.paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            roots=(ground.root,),
            redactor=request.redactor,
            brought=extending.models,
        )
        yield KnownModels(registry=models.registry, told=extending.told)
    finally:
        extending.close()
        await pool.aclose()
