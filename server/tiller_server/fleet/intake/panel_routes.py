"""HTTP of the panel: the page of `tiller web` for reading, its requests and its event stream."""

from functools import partial
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, decode
from tiller_server.fleet.intake.session_panel import EPOCH, SessionPanel
from tiller_server.lsp.jsonrpc.errors import INVALID_REQUEST, RpcError
from tiller_server.web.methods import ROLE_HEADER
from tiller_server.web.options import PAGE
from tiller_server.web.page import asset, page, takes_gzip

ROLE: Final = "reader"
"""The page offers conversations, and nothing else."""
UNREADABLE: Final = 'the body must be {"method": "agent/…", "params": {…}}'


class PanelRoutes:
    """The handlers; access is checked before they are called."""

    def __init__(self, panel: SessionPanel, *, folder: Path = PAGE) -> None:
        """Prepare.

        Args:
            panel: The sessions.
            folder: Folder of the built page.
        """
        self._panel = panel
        self._folder = folder

    async def page(self, _request: Request) -> Response:
        """Answer with the page; the session is in its fragment."""
        return await run_sync(page, self._folder)

    async def asset(self, request: Request) -> Response:
        """Answer with a file of the page."""
        name = str(request.path_params["name"])
        return await run_sync(partial(asset, self._folder, name, zipped=takes_gzip(request)))

    async def answer(self, body: bytes) -> Response:
        """Answer a request of the page.

        Args:
            body: `{method, params}` as JSON.
        """
        try:
            answer: dict[str, object] = {"result": await self._panel.call(*_request_of(body))}
        except RpcError as error:
            answer = {"error": error.wire()}
        return JSONResponse(answer, headers={ROLE_HEADER: ROLE})

    async def events(self, request: Request) -> Response:
        """Answer with the snapshots of a session; 204: no job has it, and asking again is of no use."""
        session = request.query_params.get("sessions", "")
        if not await self._panel.has(session):
            return Response(status_code=204)
        epoch, _, number = request.headers.get("last-event-id", "").rpartition(".")
        is_number = number.isascii() and number.isdecimal() and epoch == EPOCH
        events = self._panel.follow(session, seq=int(number) if is_number else -1)
        return StreamingResponse(events, media_type="text/event-stream")


def _request_of(body: bytes) -> tuple[str, JsonObject]:
    """Return the method and the params of a request.

    Raises:
        RpcError: The body is none.
    """
    try:
        asked = as_object(decode(body))
    except (ValueError, RecursionError) as error:
        raise RpcError(INVALID_REQUEST, UNREADABLE) from error
    method = asked.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, UNREADABLE)
    return method, as_object(asked.get("params"))
