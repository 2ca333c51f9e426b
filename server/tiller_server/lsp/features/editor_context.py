"""`agent/editorContext`: the editor says what its user looks at."""

from typing import Any

from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import EditorContext, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Store the context: edits wait for the end of typing, and the next prompt carries it."""
    context = parse(EditorContext, params, method="agent/editorContext")
    focused = front.editor.attention.take(context)
    if focused is not None:
        front.editor.mirror.focused(focused)
    return None
