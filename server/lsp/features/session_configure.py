"""`agent/session/configure`: change what is in force."""

from typing import Any

from agent_core.kernel.errors import TillerError
from server.lsp import pictures
from server.lsp.failures import rpc_error
from server.lsp.front import Front
from server.lsp.permission import asked_budgets, check_mode
from server.lsp.wire import ConfigureParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Change it; in force from the next request to the model."""
    asked = parse(ConfigureParams, params, method="agent/session/configure")
    hosted = await front.hosted(asked.session)
    session, change = hosted.session, asked.set
    if change.mode is not None:
        check_mode(change.mode, allowed=hosted.session.info.allowed_mode)
    budgets = asked_budgets(change)
    try:
        if budgets is not None:
            _ = session.info.configure(budgets=budgets)  # first: what it refuses, changes nothing
        if change.model is not None:
            await session.models.choose(change.model)
        if change.thinking is not None:
            await session.models.think(change.thinking)
        if change.tools is not None:
            await session.tools.activate(change.tools)
        config = session.info.configure(
            mode=change.mode,
            auto_compact=change.auto_compact,
            steering=change.steering,
            follow_up=change.follow_up,
        )
    except TillerError as error:
        raise rpc_error(error, session=session.id) from error
    await front.flush()
    return {"config": pictures.config(config), "effectiveFrom": "now"}
