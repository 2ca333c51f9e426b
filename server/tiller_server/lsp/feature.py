"""A feature: the handler of one method. Params are parsed, errors translated and results encoded here, for all of them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.base import SessionParams, WireModel, dump
from tiller_server.lsp.wire.method import Method
from tiller_server.lsp.wire.parsing import parse

ParamsT = TypeVar("ParamsT", bound=WireModel)
SessionParamsT = TypeVar("SessionParamsT", bound=SessionParams)
ResultT = TypeVar("ResultT")

ClientHandler: TypeAlias = Callable[[ConnectedClient, ParamsT], Awaitable[ResultT | JsonObject]]
SessionHandler: TypeAlias = Callable[
    [ConnectedClient, OpenSession, SessionParamsT], Awaitable[ResultT | JsonObject]
]
"""Returns the result's shape, or its JSON where a codec has written that: most of a result comes encoded."""


class Feature(Value, frozen=True, kw_only=True):
    """One method, and the function that serves it."""

    name: str
    module: str
    """Module of the handler."""
    serve: Callable[[ConnectedClient, Mapping[str, object]], Awaitable[object]]
    """Parses the params, runs the handler and returns the result as JSON.

    Raises:
        RpcError: The params do not fit the method, or the handler failed with an error of the core.
    """


def feature(
    method: Method[ParamsT, ResultT],
) -> Callable[[ClientHandler[ParamsT, ResultT]], Feature]:
    """Declare the handler of a method."""

    def declare(handler: ClientHandler[ParamsT, ResultT]) -> Feature:
        async def serve(client: ConnectedClient, given: Mapping[str, object]) -> object:
            params = parse(method.params, given, method=method.name)
            with translated_errors():
                return _encoded(await handler(client, params))

        return Feature(name=method.name, module=handler.__module__, serve=serve)

    return declare


def session_feature(
    method: Method[SessionParamsT, ResultT],
) -> Callable[[SessionHandler[SessionParamsT, ResultT]], Feature]:
    """Declare the handler of a method that works on a session, which is opened on demand and named in errors."""

    def declare(handler: SessionHandler[SessionParamsT, ResultT]) -> Feature:
        async def serve(client: ConnectedClient, given: Mapping[str, object]) -> object:
            params = parse(method.params, given, method=method.name)
            open_session = await client.resolve_session(params.session)
            with translated_errors(session=open_session.session.id):
                return _encoded(await handler(client, open_session, params))

        return Feature(name=method.name, module=handler.__module__, serve=serve)

    return declare


def _encoded(result: object) -> object:
    return dump(result) if isinstance(result, WireModel) else result
