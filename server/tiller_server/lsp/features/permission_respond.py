"""`agent/permission/respond`: answer a question of a session; the first answer wins."""

from agent_core.events import PermissionRequest
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.permissions import (
    PERMISSION_RESPOND,
    AnsweredResult,
    PermissionRespondParams,
)


@feature(PERMISSION_RESPOND)
async def permission_respond(
    client: ConnectedClient, params: PermissionRespondParams
) -> AnsweredResult:
    """Record the answer; return its status, and `by` if another client answered first."""
    client.dialogs.check_may_decide()
    for open_session in client.host.sessions():
        if client not in open_session.attached_clients:
            continue
        permissions = open_session.session.permissions
        waiting = next((one for one in permissions.pending if one.request == params.request), None)
        option = params.option if waiting is None else _option(waiting, params)
        with translated_errors(session=open_session.session.id):
            receipt = permissions.answer(
                params.request, option, note=params.note, by=client.editor.name
            )
        if receipt.status != "expired" or receipt.by is not None:
            return AnsweredResult(status=receipt.status, by=receipt.by or None)
    return AnsweredResult(status="expired")


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
