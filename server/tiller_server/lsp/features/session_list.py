"""`agent/session/list`: the stored sessions, found by their words if there are any."""

from typing import Any

from anyio import to_thread

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.encode.stored_session import session_info
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import SessionListParams, parse

PAGE = 100
MOST = 1_000


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return a page."""
    asked = parse(SessionListParams, params, method="agent/session/list")
    folder = client.root() if asked.folder is None else path_of(asked.folder)
    if folder is None:
        message = f"agent/session/list: folder must be a file URI, got {asked.folder!r}"
        raise invalid_params(message)
    library = await client.host.library()
    try:
        page = await library.list(
            str(await to_thread.run_sync(folder.resolve)),
            query=asked.query,
            limit=min(asked.limit or PAGE, MOST),
            cursor=asked.cursor,
        )
    except TillerError as error:
        raise to_rpc_error(error) from error
    answer: dict[str, Any] = {"sessions": [session_info(one) for one in page.sessions]}
    return answer if page.next is None else {**answer, "next": page.next}
