"""`agent/question/respond`: answer what a session wants to know; the first answer wins."""

from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.permissions import (
    QUESTION_RESPOND,
    AnsweredResult,
    QuestionRespondParams,
)


@feature(QUESTION_RESPOND)
async def question_respond(
    client: ConnectedClient, params: QuestionRespondParams
) -> AnsweredResult:
    """Record the answers, or the cancellation; return the status, and `by` if another client answered first."""
    client.dialogs.check_may_decide()
    answers = None if params.cancelled else params.answers
    for open_session in client.host.sessions():
        if client not in open_session.attached_clients:
            continue
        session = open_session.session
        with translated_errors(session=session.id):
            receipt = session.questions.answer(params.request, answers, by=client.editor.name)
        if receipt.status != "expired" or receipt.by is not None:
            return AnsweredResult(status=receipt.status, by=receipt.by or None)
    return AnsweredResult(status="expired")
