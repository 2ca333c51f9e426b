"""A method of the protocol: the one declaration that the schema, the tables and the handlers share."""

from types import UnionType
from typing import Generic, Literal

from typing_extensions import TypeVar

from agent_core.kernel.values import Value
from tiller_server.lsp.wire.base import WireModel

__all__ = ["Method", "client_notification", "client_request", "notification", "request"]

ParamsT = TypeVar("ParamsT", bound=WireModel, infer_variance=True)
ResultT = TypeVar("ResultT", infer_variance=True)

MessageDirection = Literal["client→server", "server→client"]
MethodKind = Literal["request", "notification"]


class Method(Value, Generic[ParamsT, ResultT], frozen=True, kw_only=True):
    """One method of the protocol."""

    name: str
    kind: MethodKind
    direction: MessageDirection
    params: type[ParamsT]
    result: type[ResultT] | UnionType
    """A shape, a union of shapes, or NoneType for a notification. For a union `ResultT` is declared with the constant."""


def request(
    name: str, params: type[ParamsT], result: type[ResultT] | UnionType
) -> Method[ParamsT, ResultT]:
    """Declare a request of clients."""
    return Method(
        name=name, kind="request", direction="client→server", params=params, result=result
    )


def notification(name: str, params: type[ParamsT]) -> Method[ParamsT, None]:
    """Declare a notification of clients."""
    return Method(
        name=name, kind="notification", direction="client→server", params=params, result=type(None)
    )


def client_request(
    name: str, params: type[ParamsT], result: type[ResultT] | UnionType
) -> Method[ParamsT, ResultT]:
    """Declare a request of the server."""
    return Method(
        name=name, kind="request", direction="server→client", params=params, result=result
    )


def client_notification(name: str, params: type[ParamsT]) -> Method[ParamsT, None]:
    """Declare a notification of the server."""
    return Method(
        name=name, kind="notification", direction="server→client", params=params, result=type(None)
    )
