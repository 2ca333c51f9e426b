"""`agent/question/respond`: answer what a session wants to know; the first answer wins."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import QuestionRespondParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Record the answers, or the cancellation; return the status, and `by` if another client answered first."""
    asked = parse(QuestionRespondParams, params, method="agent/question/respond")
    client.dialogs.check_may_decide()
    answers = None if asked.cancelled else asked.answers
    for open_session in client.host.sessions():
        if client not in open_session.attached_clients:
            continue
        session = open_session.session
        try:
            receipt = session.questions.answer(asked.request, answers, by=client.editor.name)
        except TillerError as error:
            raise to_rpc_error(error, session=session.id) from error
        if receipt.status != "expired" or receipt.by is not None:
            return {"status": receipt.status, **({"by": receipt.by} if receipt.by else {})}
    return {"status": "expired"}
