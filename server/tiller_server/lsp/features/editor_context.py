"""`agent/editorContext`: the editor says what its user looks at."""

from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.runs import EDITOR_CONTEXT, EditorContext


@feature(EDITOR_CONTEXT)
async def editor_context(client: ConnectedClient, params: EditorContext) -> None:
    """Store the context: edits wait for the end of typing, and the next prompt carries it."""
    focused = client.editor.context_tracker.take(params)
    if focused is not None:
        client.editor.mirror.focused(focused)
