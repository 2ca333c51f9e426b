"""`agent/model/cycle`: the next or the previous of the models to cycle through."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import MODEL_CYCLE, ModelChoice, ModelCycleParams


@session_feature(MODEL_CYCLE)
async def model_cycle(
    client: ConnectedClient, open_session: OpenSession, params: ModelCycleParams
) -> ModelChoice:
    """Choose it; in force from the next request to the model."""
    models = open_session.session.models
    model = await models.cycle("forward" if params.direction == 1 else "backward")
    await client.flush()
    return ModelChoice(model=model.ref if model else None, thinking=models.thinking)
