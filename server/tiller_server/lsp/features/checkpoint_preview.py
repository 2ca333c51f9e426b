"""`agent/checkpoint/preview`: the effect that a restore of a checkpoint would have on each file."""

from pathlib import Path

from anyio import to_thread

from agent_core.session.changes.checkpoints import Preview
from agent_core.workspace.diff.unified_diff import unified
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.changes import (
    CHECKPOINT_PREVIEW,
    CheckpointPreviewParams,
    CheckpointPreviewResult,
    PreviewedFile,
)


@session_feature(CHECKPOINT_PREVIEW)
async def checkpoint_preview(
    _client: ConnectedClient, open_session: OpenSession, params: CheckpointPreviewParams
) -> CheckpointPreviewResult:
    """Return the effect on each file; nothing changes. The scope `conversation` touches no file."""
    shown = await open_session.session.checkpoints.preview(params.checkpoint)
    if params.scope == "conversation":
        return CheckpointPreviewResult(files=[])
    roots = [one.folder for one in open_session.roots]
    files = await to_thread.run_sync(lambda: [_file(one, roots) for one in shown])
    return CheckpointPreviewResult(files=files)


def _file(one: Preview, roots: list[Path]) -> PreviewedFile:
    is_shown = one.is_text and one.status != "same"
    return PreviewedFile(
        uri=one.path.as_uri(),
        status=one.status,
        diff=unified(_name(one.path, roots), one.before, one.after) if is_shown else None,
        why=one.why,
    )


def _name(path: Path, roots: list[Path]) -> str:
    root = next((one for one in roots if path.is_relative_to(one)), None)
    return path.name if root is None else path.relative_to(root).as_posix()
