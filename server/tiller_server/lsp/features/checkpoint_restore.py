"""`agent/checkpoint/restore`: go back with the files, the conversation or both."""

from typing import cast

from agent_core.session.changes.checkpoints import OnConflict, RestoreScope
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, file_of, invalid_params
from tiller_server.lsp.wire.changes import (
    CHECKPOINT_RESTORE,
    CheckpointRestoreParams,
    CheckpointRestoreResult,
    SkippedFile,
)

SCOPES = ("files", "conversation", "both")
CHOICES = ("skip", "merge", "overwrite")


@feature(CHECKPOINT_RESTORE)
async def checkpoint_restore(
    client: ConnectedClient, params: CheckpointRestoreParams
) -> CheckpointRestoreResult:
    """Restore a checkpoint; each file that is skipped is listed with the reason."""
    if params.scope not in SCOPES or params.on_conflict not in CHOICES:
        message = f"scope is one of {', '.join(SCOPES)}, onConflict of {', '.join(CHOICES)}; got {params.scope!r} and {params.on_conflict!r}"
        raise invalid_params(message)
    client.dialogs.check_may_decide()
    session = (await client.resolve_session(params.session)).session
    with translated_errors(session=session.id):
        done = await session.checkpoints.restore(
            params.checkpoint,
            scope=cast("RestoreScope", params.scope),  # just checked
            files=None if params.files is None else [file_of(uri) for uri in params.files],
            on_conflict=cast("OnConflict", params.on_conflict),  # just checked
        )
    await client.flush()
    return CheckpointRestoreResult(
        restored=[path.as_uri() for path in done.restored],
        skipped=[SkippedFile(uri=one.path.as_uri(), why=one.why) for one in done.skipped],
        undo=done.undo,
        editor_text=done.editor_text,
    )
