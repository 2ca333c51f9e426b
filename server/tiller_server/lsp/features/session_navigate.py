"""`agent/session/navigate`: go on from another entry of the tree."""

from typing import Any

from agent_core.kernel import EntryId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionNavigateParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Move; with a summary the answer comes when that is made, and `$/cancelRequest` takes the move back."""
    asked = parse(SessionNavigateParams, params, method="agent/session/navigate")
    session = (await client.resolve_session(asked.session)).session
    try:
        moved = await session.tree.navigate(
            EntryId(asked.target),
            summarize=asked.summarize or False,
            instructions=asked.instructions,
            replace_instructions=asked.replace_instructions or False,
            label=asked.label,
        )
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    answer: dict[str, Any] = {"leaf": moved.leaf}
    if moved.editor_text is not None:
        answer["editorText"] = moved.editor_text
    if moved.summary is not None:
        answer["summary"] = moved.summary
    return {**answer, "cancelled": True} if moved.cancelled else answer
