"""`agent/permission/respond`: answer a question of a session; the first answer wins."""

from typing import Any

from agent_core.events import PermissionRequest
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import PermissionRespondParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Record the answer; return its status, and `by` if another client answered first."""
    asked = parse(PermissionRespondParams, params, method="agent/permission/respond")
    client.dialogs.check_may_decide()
    for open_session in client.host.sessions():
        if client not in open_session.attached_clients:
            continue
        permissions = open_session.session.permissions
        waiting = next((one for one in permissions.pending if one.request == asked.request), None)
        option = asked.option if waiting is None else _option(waiting, asked)
        try:
            receipt = permissions.answer(
                asked.request, option, note=asked.note, by=client.editor.name
            )
        except TillerError as error:
            raise to_rpc_error(error, session=open_session.session.id) from error
        if receipt.status != "expired" or receipt.by is not None:
            return {"status": receipt.status, **({"by": receipt.by} if receipt.by else {})}
    return {"status": "expired"}


def _option(waiting: PermissionRequest, asked: PermissionRespondParams) -> str:
    """Return the option that was meant: of an allowance, the one with the extent that is named."""
    chosen = waiting.option(asked.option)
    if asked.scope is None or chosen is None or not chosen.kind.startswith("allow"):
        return asked.option
    kind = f"allow{asked.scope[:1].upper()}{asked.scope[1:]}"
    found = next((one.id for one in waiting.options if one.kind == kind), None)
    if found is None:
        message = f"the question has no answer for the scope {asked.scope!r}"
        raise invalid_params(message)
    return found
