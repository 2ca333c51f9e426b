"""`tiller.accept` and `tiller.reject`: the word of a user whose editor knows no method of ours."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from agent_core.changes.values import HunkAction
from agent_core.kernel.errors import TillerError
from agent_core.session.changes.review import ReviewRequest
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.messages import Params, as_object
from tiller_server.lsp.operations.resolutions import parse_resolutions
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.sessions.open_session import show_error_message
from tiller_server.lsp.wire.changes import Resolution

ANSWER_S: Final = 2.0
"""Longest wait of a command, in seconds; slower work continues, and its result is seen in the text."""


async def accept_or_reject(
    client: ConnectedClient, action: HunkAction, arguments: tuple[object, ...]
) -> Mapping[str, Sequence[str]]:
    """Accept or reject a hunk, a file or a change set; without arguments all that waits in the session.

    Raises:
        RpcError: The arguments make no sense, or this client may not decide.
    """
    client.dialogs.check_may_decide()
    asked = argument_of(arguments)
    session = asked.pop("session", None)
    open_session = await client.resolve_session(session if isinstance(session, str) else None)
    changes = open_session.session.changes
    if asked:
        try:
            items = [Resolution.model_validate({**asked, "action": action})]
        except ValueError as error:
            message = f"tiller.{action} takes one object with `hunk`, `file` or `changeSet`, got {asked!r:.200}"
            raise invalid_params(message) from error
        wishes = await parse_resolutions(items)
    else:
        wishes = [ReviewRequest(action=action, change_set=str(open_session.session.id))]
    with anyio.move_on_after(ANSWER_S):
        try:
            outcomes = await changes.resolve(wishes)
        except TillerError as error:
            raise to_rpc_error(error, session=open_session.session.id) from error
        await client.flush()
        for one in outcomes:
            if one.status == "conflict":
                show_error_message(
                    client,
                    f"Tiller: not rejected: {one.why or 'it was changed or decided meanwhile'}",
                )
        return {"results": [one.status for one in outcomes]}
    return {"results": []}


def argument_of(arguments: tuple[object, ...]) -> Params:
    """Return the one object that a command takes; none is an empty one.

    Raises:
        RpcError: It is something else.
    """
    if not arguments:
        return {}
    first = as_object(arguments[0])
    if first is None:
        message = f"the argument {arguments[0]!r:.200} is no object"
        raise invalid_params(message)
    return dict(first)
