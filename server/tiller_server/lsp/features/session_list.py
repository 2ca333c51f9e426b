"""`agent/session/list`: the stored sessions, found by their words if there are any."""

from anyio import to_thread

from agent_core.kernel import JsonObject
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.encode.stored_session import session_info
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import SESSION_LIST, SessionListParams

PAGE = 100
MOST = 1_000


@feature(SESSION_LIST)
async def session_list(client: ConnectedClient, params: SessionListParams) -> JsonObject:
    """Return a page."""
    folder = None if params.scope == "all" else await _folder(client, params)
    library = await client.host.library()
    page = await library.list(
        folder,
        query=params.query,
        limit=min(params.limit or PAGE, MOST),
        cursor=params.cursor,
    )
    answer: JsonObject = {"sessions": [session_info(one) for one in page.sessions]}
    return answer if page.next is None else {**answer, "next": page.next}


async def _folder(client: ConnectedClient, params: SessionListParams) -> str:
    folder = client.root() if params.folder is None else path_of(params.folder)
    if folder is None:
        message = f"agent/session/list: folder must be a file URI, got {params.folder!r}"
        raise invalid_params(message)
    return str(await to_thread.run_sync(folder.resolve))
