"""Decisions of clients on changes, in the session's terms."""

import os
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from agent_core.changes.values import ACTIONS
from agent_core.session.changes.review import ReviewRequest
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.sessions.client import invalid_params
from tiller_server.lsp.wire.changes import Resolution


async def parse_resolutions(items: Sequence[Resolution]) -> list[ReviewRequest]:
    """Read the items of a request.

    Raises:
        RpcError: One names a file that is none, or wants something unknown.
    """
    return [await _wish(one) for one in items]


async def _wish(one: Resolution) -> ReviewRequest:
    action = ACTIONS.get(one.action)
    if action is None:
        message = f"the action {one.action!r} is not known; use accept, reject or reviewed"
        raise invalid_params(message)
    file = None if one.file is None else await _real(one.file)
    return ReviewRequest(action=action, hunk=one.hunk, file=file, change_set=one.change_set)


async def _real(uri: str) -> Path:
    """Follow links as the session does, also of a file that is gone."""
    try:
        path = path_of(uri)
    except ValueError:
        path = None
    if path is None or not path.is_absolute() or "\0" in str(path):
        message = f"{uri[:200]!r} is no file"
        raise invalid_params(message)
    return Path(await to_thread.run_sync(os.path.realpath, path))
