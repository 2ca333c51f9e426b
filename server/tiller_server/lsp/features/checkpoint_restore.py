"""`agent/checkpoint/restore`: go back with the files, the conversation or both."""

from pathlib import Path
from typing import Any, cast

from agent_core.kernel.errors import TillerError
from agent_core.session.changes.checkpoints.messages import RestoreScope
from agent_core.session.changes.checkpoints.restore import OnConflict
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import CheckpointRestoreParams, parse

SCOPES = ("files", "conversation", "both")
CHOICES = ("skip", "merge", "overwrite")


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Restore a checkpoint; each file that is skipped is listed with the reason."""
    asked = parse(CheckpointRestoreParams, params, method="agent/checkpoint/restore")
    if asked.scope not in SCOPES or asked.on_conflict not in CHOICES:
        message = f"scope is one of {', '.join(SCOPES)}, onConflict of {', '.join(CHOICES)}; got {asked.scope!r} and {asked.on_conflict!r}"
        raise invalid_params(message)
    client.dialogs.check_may_decide()
    session = (await client.resolve_session(asked.session)).session
    try:
        done = await session.checkpoints.restore(
            asked.checkpoint,
            scope=cast("RestoreScope", asked.scope),  # just checked
            files=None if asked.files is None else [_path(uri) for uri in asked.files],
            on_conflict=cast("OnConflict", asked.on_conflict),  # just checked
        )
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    answer: dict[str, Any] = {
        "restored": [path.as_uri() for path in done.restored],
        "skipped": [{"uri": one.path.as_uri(), "why": one.why} for one in done.skipped],
        "undo": done.undo,
    }
    return answer if done.editor_text is None else {**answer, "editorText": done.editor_text}


def _path(uri: str) -> Path:
    path = path_of(uri)
    if path is None:
        message = f"{uri!r} names no file; give its file: URI as the preview does"
        raise invalid_params(message)
    return path
