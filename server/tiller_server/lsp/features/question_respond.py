"""`agent/question/respond`: answer what a session wants to know; the first answer wins."""

from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import QuestionRespondParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Record the answers, or the cancellation; return the status, and `by` if another client answered first."""
    asked = parse(QuestionRespondParams, params, method="agent/question/respond")
    front.dialogs.check_may_decide()
    answers = None if asked.cancelled else asked.answers
    for hosted in front.host.sessions():
        if front not in hosted.fronts:
            continue
        session = hosted.session
        try:
            receipt = session.questions.answer(asked.request, answers, by=front.editor.name)
        except TillerError as error:
            raise rpc_error(error, session=session.id) from error
        if receipt.status != "expired" or receipt.by is not None:
            return {"status": receipt.status, **({"by": receipt.by} if receipt.by else {})}
    return {"status": "expired"}
