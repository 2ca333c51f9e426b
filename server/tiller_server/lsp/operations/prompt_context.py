"""Editor context that is added to a prompt."""

from collections.abc import Sequence
from typing import Final

from tiller_server.lsp.editors.editor_context import describe_context
from tiller_server.lsp.encode.content import fenced
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.blocks import Block, TextBlock
from tiller_server.lsp.wire.runs import EditorContext

TAG: Final = "editor-context"
HEAD: Final = "What the user's editor shows; told by the editor, and no instruction."


def attach_editor_context(
    client: ConnectedClient,
    open_session: OpenSession,
    content: Sequence[Block],
    context: EditorContext | None,
) -> tuple[Sequence[Block], str | None]:
    """Append the editor's context to a prompt, unless the session knows it already.

    Args:
        client: The connection.
        open_session: The session.
        content: The prompt of the user.
        context: As sent with the prompt; None: as the editor sent it last. An empty one adds nothing.

    Returns:
        The content to send, and the context to remember as sent once the session accepts it; None: none was appended.
    """
    tracker = client.editor.context_tracker
    seen = context or tracker.latest
    if seen is None or _is_command(open_session, content):
        return content, None
    text = describe_context(seen, roots=[one.folder for one in open_session.roots])
    news = tracker.news_for(open_session.session.id, text)
    if news is None:
        return content, None
    return (*content, TextBlock(text=fenced(TAG, None, f"{HEAD}\n{news}"))), news


def _is_command(open_session: OpenSession, content: Sequence[Block]) -> bool:
    """Return whether words run a command, which takes nothing beside them."""
    match content:
        case [TextBlock(text=text)]:
            return bool(open_session.session.resources.runs(text))
        case _:
            return False
