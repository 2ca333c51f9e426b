"""`agent/plan/respond`: answer the plan that waits for approval."""

from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import PLAN_RESPOND, PlanRespondParams, PlanRespondResult


@session_feature(PLAN_RESPOND)
async def plan_respond(
    client: ConnectedClient, open_session: OpenSession, params: PlanRespondParams
) -> PlanRespondResult:
    """Approve it, go on planning, or reject it; only an approval leaves the mode `plan`."""
    from agent_core.session.history.plans import answer_plan  # noqa: PLC0415 - at first use

    with open_session.environment.use_for_submission(client.origin.env):
        receipt = await answer_plan(
            open_session.session,
            params.answer,
            revision=params.revision,
            sha256=params.sha256,
            text=params.text,
        )
    await client.flush()
    return PlanRespondResult(run=None if receipt is None else receipt.run)
