"""`agent/model/cycle`: the next or the previous of the models to cycle through."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import ModelCycleParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Choose it; in force from the next request to the model."""
    asked = parse(ModelCycleParams, params, method="agent/model/cycle")
    session = (await client.resolve_session(asked.session)).session
    try:
        model = await session.models.cycle("forward" if asked.direction == 1 else "backward")
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    return {"model": model.ref if model else None, "thinking": session.models.thinking}
