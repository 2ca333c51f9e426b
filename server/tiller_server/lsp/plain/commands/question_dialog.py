"""Shows once more what the session asks, for users whose dialog is gone: another one took its place, or they closed it by mistake."""

from typing import Final

from agent_core.events import PermissionRequest, Question
from agent_core.kernel.errors import TillerError
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.permission_dialog import Dialog, chosen, dialog
from tiller_server.lsp.dialogs.presenter import SHOW_MESSAGE
from tiller_server.lsp.dialogs.question_dialog import line_answer, line_dialog, shows
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.plain.client import PlainClient

OPEN_S: Final = 120.0
IN_THE_CHAT: Final = "the agent asks what no dialog can show; the question stands in the chat file."


async def ask_again(plain_client: PlainClient) -> object:
    """Show the oldest question that waits; the answer does not wait for the user's."""
    client = plain_client.client
    client.dialogs.check_may_decide()
    open_session = await client.resolve_session()
    pending = open_session.session.info.snapshot().pending
    if not pending:
        plain_client.show_message("nothing is asked.")
        return {"request": None}
    asked = pending[0]

    async def ask() -> None:
        try:
            await _ask(plain_client, open_session.session, asked)
        except (RpcError, ConnectionError, TimeoutError):
            # It waits on: what could not be shown is no answer.
            plain_client.show_message(
                "the question could not be shown; it stands in the chat file."
            )
        except TillerError as error:
            plain_client.show_message(str(error), kind=1)

    client.host.start(ask, what="a question that is shown again")
    return {"request": asked.request}


async def _ask(
    plain_client: PlainClient, session: AgentSession, asked: PermissionRequest | Question
) -> None:
    """Ask past the one dialog at a time: that one may be open for ever where nobody sees it."""
    by = plain_client.client.editor.name
    if isinstance(asked, PermissionRequest):
        pressed = await _pressed(plain_client, dialog(asked))
        if pressed is not None:
            _ = session.permissions.answer(asked.request, chosen(asked, pressed), by=by)
        return
    if len(asked.questions) != 1 or not shows(asked.questions[0]):
        plain_client.show_message(IN_THE_CHAT)
        return
    (line,) = asked.questions
    answer = line_answer(line, await _pressed(plain_client, line_dialog(line)))
    if answer is not None:
        _ = session.questions.answer(asked.request, {line.id: answer}, by=by)


async def _pressed(plain_client: PlainClient, params: Dialog) -> object:
    return await plain_client.client.connection.request(SHOW_MESSAGE, params, timeout_s=OPEN_S)
