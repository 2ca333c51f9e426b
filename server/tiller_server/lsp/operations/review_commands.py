"""`tiller.accept` and `tiller.reject`: the word of a user whose editor knows no method of ours."""

from typing import Any, Final

import anyio

from agent_core.changes.decisions import Action
from agent_core.kernel.errors import TillerError
from agent_core.session.changes.review import Wish
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.operations.resolutions import wishes_of
from tiller_server.lsp.sessions.client import Front, bad
from tiller_server.lsp.sessions.open_session import show
from tiller_server.lsp.wire import Resolution

ANSWER_S: Final = 2.0
"""Longest wait of a command, in seconds; slower work continues, and its result is seen in the text."""


async def decide(front: Front, action: Action, arguments: tuple[Any, ...]) -> object:
    """Accept or reject a hunk, a file or a change set; without arguments all that waits in the session.

    Raises:
        RpcError: The arguments make no sense, or this client may not decide.
    """
    front.dialogs.check_may_decide()
    asked = argument_of(arguments)
    session = asked.pop("session", None)
    hosted = await front.hosted(session if isinstance(session, str) else None)
    changes = hosted.session.changes
    if asked:
        try:
            items = [Resolution.model_validate({**asked, "action": action})]
        except ValueError as error:
            message = f"tiller.{action} takes one object with `hunk`, `file` or `changeSet`, got {asked!r:.200}"
            raise bad(message) from error
        wishes = await wishes_of(items)
    else:
        wishes = [Wish(action=action, change_set=str(hosted.session.id))]
    with anyio.move_on_after(ANSWER_S):
        try:
            outcomes = await changes.resolve(wishes)
        except TillerError as error:
            raise rpc_error(error, session=hosted.session.id) from error
        await front.flush()
        for one in outcomes:
            if one.status == "conflict":
                show(
                    front,
                    f"Tiller: not rejected: {one.why or 'it was changed or decided meanwhile'}",
                )
        return {"results": [one.status for one in outcomes]}
    return {"results": []}


def argument_of(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the one object that a command takes; none is an empty one.

    Raises:
        RpcError: It is something else.
    """
    if not arguments:
        return {}
    first = as_object(arguments[0])
    if first is None:
        message = f"the argument {arguments[0]!r:.200} is no object"
        raise bad(message)
    return dict(first)
