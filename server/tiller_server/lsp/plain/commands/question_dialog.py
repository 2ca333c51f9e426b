"""Shows once more what the session asks, for users whose dialog is gone: another one took its place, or they closed it by mistake."""

from typing import Any, Final

from agent_core.events import PermissionRequest, Question
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.dialogs.permission_dialog import chosen, dialog
from tiller_server.lsp.dialogs.presenter import SHOW_MESSAGE
from tiller_server.lsp.dialogs.question_dialog import line_answer, line_dialog, shows
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.plain.client import Room

OPEN_S: Final = 120.0
IN_THE_CHAT: Final = "the agent asks what no dialog can show; the question stands in the chat file."


async def ask_again(room: Room) -> object:
    """Show the oldest question that waits; the answer does not wait for the user's."""
    front = room.front
    front.dialogs.check_may_decide()
    hosted = await front.hosted()
    pending = hosted.session.info.snapshot().pending
    if not pending:
        room.tell("nothing is asked.")
        return {"request": None}
    asked = pending[0]

    async def ask() -> None:
        try:
            await _ask(room, hosted.session, asked)
        except (RpcError, ConnectionError, TimeoutError):
            # It waits on: what could not be shown is no answer.
            room.tell("the question could not be shown; it stands in the chat file.")
        except TillerError as error:
            room.tell(str(error), kind=1)

    front.host.start(ask, what="a question that is shown again")
    return {"request": asked.request}


async def _ask(room: Room, session: Any, asked: PermissionRequest | Question) -> None:
    """Ask past the one dialog at a time: that one may be open for ever where nobody sees it."""
    by = room.front.editor.name
    if isinstance(asked, PermissionRequest):
        pressed = await _pressed(room, dialog(asked))
        if pressed is not None:
            _ = session.permissions.answer(asked.request, chosen(asked, pressed), by=by)
        return
    if len(asked.questions) != 1 or not shows(asked.questions[0]):
        room.tell(IN_THE_CHAT)
        return
    (line,) = asked.questions
    answer = line_answer(line, await _pressed(room, line_dialog(line)))
    if answer is not None:
        _ = session.questions.answer(asked.request, {line.id: answer}, by=by)


async def _pressed(room: Room, params: dict[str, Any]) -> object:
    return await room.front.connection.request(SHOW_MESSAGE, params, timeout_s=OPEN_S)
