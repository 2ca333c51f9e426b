"""How far a connection has come, and which messages that allows."""

import asyncio
import enum
import re
from typing import Final

from lsprotocol.types import EXIT, INITIALIZE

from tiller_server.lsp.jsonrpc.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_NOT_INITIALIZED,
    RpcError,
)
from tiller_server.lsp.jsonrpc.messages import JsonRpcRequest, as_array, as_object

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x1f\x7f]*")


class ConnectionStage(enum.Enum):
    """The steps of a connection's life, in order."""

    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"
    SHUT_DOWN = "shut down"
    CLOSED = "closed"


class Lifecycle:
    """The stage of one connection and, at the end, why it is over."""

    def __init__(self) -> None:
        self.stage = ConnectionStage.NEW
        self.ended = asyncio.Event()
        self.exit_code = 0

    def end(self, exit_code: int) -> None:
        """End the connection. The first reason counts."""
        if not self.ended.is_set():
            self.exit_code = exit_code
            self.ended.set()

    def leave_initializing(self, stage: ConnectionStage) -> None:
        """Go on to the stage that the answer to `initialize` leads to, unless it is over."""
        if self.stage is ConnectionStage.INITIALIZING:
            self.stage = stage

    def refusal(self, request: JsonRpcRequest) -> RpcError | None:
        """Return why a request may not be served at this stage."""
        if self.stage in {ConnectionStage.SHUT_DOWN, ConnectionStage.CLOSED}:
            return RpcError(INVALID_REQUEST, "The server is shut down; only 'exit' may follow.")
        if request.method == INITIALIZE:
            if self.stage is ConnectionStage.NEW:
                return None
            return RpcError(INVALID_REQUEST, "'initialize' may be sent only once.")
        if self.stage is ConnectionStage.READY:
            return None
        return RpcError(SERVER_NOT_INITIALIZED, "The first request must be 'initialize'.")

    def takes_notification(self, method: str) -> bool:
        """Whether a notification counts at this stage."""
        return self.stage is ConnectionStage.READY or method == EXIT


def check_initialize(params: object) -> dict[str, object]:
    """Return the params of `initialize`, or refuse what nothing later could make sense of.

    Raises:
        RpcError: -32602, the capabilities are no object or a root is no URI.
    """
    given = as_object(params) or {}
    if as_object(given.get("capabilities")) is None:
        raise RpcError(INVALID_PARAMS, "initialize: params.capabilities must be an object.")
    folders = [as_object(folder) or {} for folder in as_array(given.get("workspaceFolders")) or ()]
    roots = [given.get("rootUri"), *(folder.get("uri") for folder in folders)]
    for root in roots:
        if root and not (isinstance(root, str) and _URI.fullmatch(root)):
            raise RpcError(INVALID_PARAMS, f"initialize: {root!r:.80} is no URI.")
    return given
