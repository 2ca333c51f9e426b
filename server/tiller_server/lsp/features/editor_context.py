"""`agent/editorContext`: the editor says what its user looks at."""

from typing import Any

from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import EditorContext, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Store the context: edits wait for the end of typing, and the next prompt carries it."""
    context = parse(EditorContext, params, method="agent/editorContext")
    focused = client.editor.context_tracker.take(context)
    if focused is not None:
        client.editor.mirror.focused(focused)
    return None
