"""The models and accounts as commands need them, without a session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agent_core.assembly.models import load_models
from agent_core.kernel import SystemClock
from agent_core.providers.http import HttpPool
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from server.cli.environment import Environment


@asynccontextmanager
async def open_registry(paths: AppPaths, environment: Environment) -> AsyncGenerator[ModelRegistry]:
    """Read what models there are; connections are closed with the context."""
    clock = SystemClock()
    pool = HttpPool(clock=clock)
    try:
        models = await load_models(paths=paths, env=environment.variables, clock=clock, pool=pool)
        yield models.registry
    finally:
        await pool.aclose()
