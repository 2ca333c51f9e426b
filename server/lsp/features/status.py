"""`agent/status`: what this server is, has open and can do."""

from typing import Any

from server.lsp.front import Front
from server.lsp.names import PROTOCOL, VERSION
from server.lsp.wire import StatusParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Give the state of the server."""
    _ = parse(StatusParams, params)
    return {
        "daemon": {"version": VERSION, "protocol": PROTOCOL},
        "sessions": [
            {
                "session": hosted.session.id,
                "state": hosted.session.info.snapshot().state,
                "root": hosted.root.as_uri(),
            }
            for hosted in front.host.sessions()
        ],
        "quirks": front.editor.quirks_in_force(),
    }
