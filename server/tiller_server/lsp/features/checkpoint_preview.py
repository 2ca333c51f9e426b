"""`agent/checkpoint/preview`: the effect that a restore of a checkpoint would have on each file."""

from pathlib import Path
from typing import Any

from anyio import to_thread

from agent_core.changes.diff.unified_diff import unified
from agent_core.kernel.errors import TillerError
from agent_core.session.changes.checkpoints.restore import Preview
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import CheckpointPreviewParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the effect on each file; nothing changes. The scope `conversation` touches no file."""
    asked = parse(CheckpointPreviewParams, params, method="agent/checkpoint/preview")
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    try:
        shown = await session.checkpoints.preview(asked.checkpoint)
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    if asked.scope == "conversation":
        return {"files": []}
    roots = [one.folder for one in open_session.roots]
    return {"files": await to_thread.run_sync(lambda: [_file(one, roots) for one in shown])}


def _file(one: Preview, roots: list[Path]) -> dict[str, Any]:
    entry: dict[str, Any] = {"uri": one.path.as_uri(), "status": one.status}
    if one.is_text and one.status != "same":
        entry["diff"] = unified(_name(one.path, roots), one.before, one.after)
    return entry if one.why is None else {**entry, "why": one.why}


def _name(path: Path, roots: list[Path]) -> str:
    root = next((one for one in roots if path.is_relative_to(one)), None)
    return path.name if root is None else path.relative_to(root).as_posix()
