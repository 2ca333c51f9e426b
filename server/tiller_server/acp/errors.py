"""Errors of ACP requests.

TillerError
└── AcpError: a request is answered with an error
    └── PeerGone: a request to the client has no answer, because the connection has ended or the client is silent
"""

from collections.abc import Mapping
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import TillerError
from tiller_server.agent_client.connection import AgentRefused

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
CANCELLED: Final = -32800

CODES: Final[Mapping[str, int]] = {
    "AuthRequired": AUTH_REQUIRED,
    "SessionNotFound": NOT_FOUND,
    "RootNotAllowed": INVALID_PARAMS,
    "UnsupportedCapability": INVALID_PARAMS,
    "PermissionDenied": INVALID_PARAMS,
}
"""Codes of ACP for kinds of errors of the agent; any other kind is an internal error with `data.kind`."""


class AcpError(TillerError):
    """A request is answered with an error.

    Attributes:
        code: Code of the JSON-RPC error.
        data: Data of the error, `{}` for none.
    """

    def __init__(self, code: int, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data: JsonObject = data or {}


class PeerGone(AcpError):
    """The client does not answer a request."""

    def __init__(self, message: str) -> None:
        super().__init__(INTERNAL_ERROR, message)


def of_agent(error: AgentRefused) -> AcpError:
    """Return the error of ACP for a refusal of the agent."""
    kind = error.data.get("kind")
    data: JsonObject = {
        name: error.data[name] for name in ("kind", "retryable", "hint") if name in error.data
    }
    if error.code in {INVALID_PARAMS, CANCELLED}:
        return AcpError(error.code, str(error), data)
    return AcpError(CODES.get(str(kind), INTERNAL_ERROR), str(error), data)
