"""Encoding of outgoing messages as bytes: plain JSON, with lsprotocol's objects anywhere in it."""

import enum
import logging
from collections.abc import Mapping
from typing import Any, cast

import cattrs

from tiller_server.lsp.jsonrpc.errors import INTERNAL_ERROR, REQUEST_FAILED, RpcError
from tiller_server.lsp.jsonrpc.messages import RequestId, make_encoder
from tiller_server.lsp.transport.framing import MAX_FRAME_BYTES

_log = logging.getLogger(__name__)


class MessageEncoder:
    """Writes messages for one connection."""

    def __init__(self, converter: cattrs.Converter) -> None:
        self._converter = converter
        self.encode = make_encoder(self._plain)

    def answer(self, request_id: RequestId | None, outcome: object) -> bytes:
        """Return the response to a request; one that cannot be written becomes an error.

        Args:
            request_id: None when the request's own could not be read.
            outcome: A result, or an `RpcError`.
        """
        message: dict[str, object] = {"jsonrpc": "2.0", "id": request_id}
        if isinstance(outcome, RpcError):
            message["error"] = outcome.wire()
        else:
            message["result"] = outcome
        try:
            body = self.encode(message)
        except Exception:  # noqa: BLE001 - whatever a result is made of, its request gets an answer
            _log.exception("The answer to %r cannot be written as JSON.", request_id)
            why = "The server's answer cannot be written as JSON; its log says more."
            error = RpcError(INTERNAL_ERROR, why, {"kind": "Internal", "retryable": False})
        else:
            if len(body) <= MAX_FRAME_BYTES:
                return body
            error = _too_large(len(body))
        return self.encode({"jsonrpc": "2.0", "id": request_id, "error": error.wire()})

    def _plain(self, value: object) -> object:
        if hasattr(type(value), "__attrs_attrs__"):
            return self._converter.unstructure(value)
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, Mapping):
            return dict(cast("Mapping[Any, Any]", value))  # the encoder judges the keys itself
        why = f"a {type(value).__name__} has no JSON form"
        raise TypeError(why)


def _too_large(size: int) -> RpcError:
    why = (
        f"The answer has {size} bytes, above the limit of {MAX_FRAME_BYTES} bytes for one message."
    )
    data = {"bytes": size, "limitBytes": MAX_FRAME_BYTES}
    return RpcError(
        REQUEST_FAILED,
        f"{why} Ask for less: agent/session/read gives a session page by page.",
        {"kind": "UnsupportedCapability", "retryable": False, **data},
    )
