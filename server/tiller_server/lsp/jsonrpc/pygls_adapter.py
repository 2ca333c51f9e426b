"""LSP protocol of pygls, with our own input and output paths."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, cast

import cattrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from typing_extensions import override

from tiller_server.lsp.jsonrpc.client_requests import ClientRequests
from tiller_server.lsp.jsonrpc.encoder import MessageEncoder
from tiller_server.lsp.jsonrpc.errors import METHOD_NOT_FOUND, ResultThen, RpcError
from tiller_server.lsp.jsonrpc.handler_invoker import FeatureHandler, HandlerStep, Invoker
from tiller_server.lsp.jsonrpc.lifecycle import ConnectionStage, Lifecycle, check_initialize
from tiller_server.lsp.jsonrpc.messages import (
    BadMessage,
    JsonRpcNotification,
    JsonRpcRequest,
    JsonRpcResponse,
    Params,
    RequestId,
    as_object,
    decode,
    is_request_id,
)
from tiller_server.lsp.jsonrpc.request_queue import RequestQueue
from tiller_server.lsp.jsonrpc.typed_params import read_object, read_params
from tiller_server.lsp.transport.outbox import Lane, Outbox
from tiller_server.lsp.transport.progress import WorkDoneTokens

RawHandler: TypeAlias = Callable[[Params], Awaitable[object]]
Amendment: TypeAlias = Callable[[types.InitializeResult], None]
HandlerSteps: TypeAlias = Generator[HandlerStep, Any, None]

# pygls would keep a second copy of every document, read files on the loop, and fail before our
# own mirror hears of a change. The same goes for the folders.
_PASSED_ON: Final = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Registry:
    """Handlers that get their params as they were sent, and changes to the capabilities."""

    requests: dict[str, RawHandler] = field(default_factory=dict[str, RawHandler])
    notifications: dict[str, RawHandler] = field(default_factory=dict[str, RawHandler])
    amendments: list[Amendment] = field(default_factory=list[Amendment])


class TillerProtocol(LanguageServerProtocol):
    """The state of one connection, and what is done with each message that arrives on it."""

    def __init__(self, server: LanguageServer, converter: cattrs.Converter) -> None:
        super().__init__(server, converter)
        self.lifecycle = Lifecycle()
        self.initialize_params: Params = {}
        self.registry = Registry()
        self.outbox = Outbox(on_overflow=partial(self.lifecycle.end, 1))
        self.calls = RequestQueue(self._answer)
        self.requests = ClientRequests(self._send_data)
        self.work_done = WorkDoneTokens(self.tell)
        self._encoding = MessageEncoder(converter)
        self._invoker = Invoker(lambda: server.thread_pool)
        builtin = cast(
            "dict[str, FeatureHandler]", self.fm.builtin_features
        )  # pygls leaves it untyped
        builtin.update({method: partial(self._pass_on, method) for method in _PASSED_ON})

    # ------------------------------------------------------------------ in

    def read(self, method: str, params: object) -> Any:
        """Read the params of a standard method that is served raw.

        Raises:
            RpcError: -32602, they do not have the method's shape.
        """
        return read_params(self._converter, method=method, params=params)

    def receive(self, body: bytes) -> None:
        """Act on one message body: start its handler, or answer what is wrong with it."""
        try:
            message = decode(body)
        except BadMessage as bad:
            self._answer(bad.request_id, bad.error)
            return
        match message:
            case JsonRpcRequest():
                self._accept_request(message)
            case JsonRpcNotification():
                self._accept_notification(message)
            case JsonRpcResponse():
                self.requests.settle(message)

    def _accept_request(self, request: JsonRpcRequest) -> None:
        refusal = self.calls.refusal(request.id) or self.lifecycle.refusal(request)
        if refusal is not None:
            self._answer(request.id, refusal)
            return
        serve = self._serve_request
        if request.method == types.INITIALIZE:
            self.lifecycle.stage = ConnectionStage.INITIALIZING
            serve = self._serve_initialize
        self.calls.start_request(request.id, method=request.method, work=serve(request))

    def _accept_notification(self, notification: JsonRpcNotification) -> None:
        method = notification.method
        if method == types.CANCEL_REQUEST:
            target = (as_object(notification.params) or {}).get("id")
            if is_request_id(target):
                self.calls.cancel(target)
        elif self.lifecycle.takes_notification(method):
            work = self._serve_notification(notification)
            self.calls.start_notification(method=method, work=work)
        else:
            _log.debug("The notification %r came out of turn and was dropped.", method)

    async def _serve_initialize(self, request: JsonRpcRequest) -> object:
        try:
            self.initialize_params = check_initialize(request.params)
            result = await self._serve_request(request)
        except BaseException:
            self.lifecycle.leave_initializing(ConnectionStage.NEW)
            raise
        self.lifecycle.leave_initializing(ConnectionStage.READY)
        return result

    async def _serve_request(self, request: JsonRpcRequest) -> object:
        raw = self.registry.requests.get(request.method)
        if raw is not None:
            return await raw(read_object(method=request.method, params=request.params))
        feature = self._feature(request.method)
        if feature is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {request.method[:80]!r}.")
        params = read_params(self._converter, method=request.method, params=request.params)
        try:
            return await self._invoker.run(feature, (params,))
        except JsonRpcException as error:
            raise RpcError(error.code, error.message) from error

    async def _serve_notification(self, notification: JsonRpcNotification) -> object:
        method, params = notification.method, notification.params
        raw = self.registry.notifications.get(method)
        if raw is not None:
            return await raw(read_object(method=method, params=params))
        feature = self._feature(method)
        if feature is None:
            return None
        typed = read_params(self._converter, method=method, params=params)
        return await self._invoker.run(feature, (typed,))

    def _feature(self, method: str) -> FeatureHandler | None:
        builtin = cast(
            "dict[str, FeatureHandler]", self.fm.builtin_features
        )  # pygls leaves it untyped
        return builtin.get(method) or self._user_feature(method)

    def _user_feature(self, method: str) -> FeatureHandler | None:
        return cast("dict[str, FeatureHandler]", self.fm.features).get(
            method
        )  # pygls leaves it untyped

    # ------------------------------------------------------------------ out

    def tell(self, method: str, params: object, lane: Lane) -> bool:
        """Send a notification; say whether the outbox took it.

        Args:
            method: Any method, also one that lsprotocol has types for.
            params: A JSON-ready value or an lsprotocol object; None leaves the member out.
            lane: How the outbox ranks it.
        """
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        return self.outbox.put(self._encoding.encode(message), lane)

    @override
    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification in pygls's way."""
        self.tell(method, params, Lane.CONTROL)

    @override
    def send_request(
        self,
        method: str,
        params: Any = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        """Ask the client in pygls's way: the result comes in lsprotocol's types.

        Ids are always ours; `msg_id` is not used.
        """
        request_id, answer = self.requests.begin(method, params)
        typed: Future[Any] = Future()
        answer.add_done_callback(partial(self._pass_result, method, typed))
        if callback is not None:
            typed.add_done_callback(partial(_call_with_result, callback))
        typed.add_done_callback(lambda it: it.cancelled() and self.requests.withdraw(request_id))
        return typed

    def _pass_result(self, method: str, typed: Future[Any], done: asyncio.Future[object]) -> None:
        if typed.cancelled() or done.cancelled():
            return
        try:
            result = done.result()
            if response := types.METHOD_TO_TYPES.get(method, (None, None))[1]:
                shape = {"jsonrpc": "2.0", "id": 0, "result": result}
                result = self._converter.structure(shape, response).result
        except Exception as error:  # noqa: BLE001 - whoever waits gets whatever went wrong
            typed.set_exception(error)
        else:
            typed.set_result(result)

    # pygls caches these two by instance for ever, and with them every connection there was.
    @override
    def get_message_type(self, method: str) -> type[Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride] - see above
        """Return the class of a method's message."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[0]

    @override
    def get_result_type(self, method: str) -> type[Any] | None:  # pyright: ignore[reportIncompatibleVariableOverride] - see above
        """Return the class of a method's response."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    @override
    def _send_data(self, data: Any) -> None:
        self.outbox.put(self._encoding.encode(data), Lane.CONTROL)

    def _answer(self, request_id: RequestId | None, outcome: object) -> None:
        if not isinstance(outcome, ResultThen):
            self.outbox.put(self._encoding.answer(request_id, outcome), Lane.CONTROL)
            return
        self._answer(request_id, outcome.result)
        try:
            outcome.then()
        except Exception:  # noqa: BLE001 - the answer is out; what follows it is the handler's affair
            _log.exception("What was to follow the answer to %r failed.", request_id)

    # ------------------------------------------------------------------ LSP's own methods

    def _pass_on(self, method: str, params: object = None) -> HandlerSteps:
        handler = self._user_feature(method)
        if handler is not None:
            yield handler, (params,), None

    @override
    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[HandlerStep, Any, types.InitializeResult]:
        """Work out the capabilities from what is registered, then let others amend them."""
        general = params.capabilities.general
        if general is not None and "utf-8" in (general.position_encodings or ()):
            general.position_encodings = (types.PositionEncodingKind.Utf8,)
        result = yield from super().lsp_initialize(params)
        for amend in self.registry.amendments:
            amend(result)
        return result

    @override
    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> HandlerSteps:
        """Refuse further requests and cancel those in flight, which can read the reason from the stage."""
        yield from self._pass_on(types.SHUTDOWN, *args)
        self.lifecycle.stage = ConnectionStage.SHUT_DOWN
        self.calls.cancel_others(than=asyncio.current_task())

    @override
    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> HandlerSteps:
        """End this connection, and nothing else in the process."""
        is_orderly = self.lifecycle.stage is ConnectionStage.SHUT_DOWN
        yield from self._pass_on(types.EXIT, *args)
        self.lifecycle.end(0 if is_orderly else 1)

    @override
    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(  # pyright: ignore[reportIncompatibleMethodOverride] - pygls infers too narrow a type
        self, params: types.WorkDoneProgressCancelParams
    ) -> HandlerSteps:
        """Report the user's cancellation to the owner of this progress token."""
        self.work_done.cancel(params.token)
        yield from self._pass_on(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, params)


def _call_with_result(callback: Callable[[Any], None], done: Future[Any]) -> None:
    if not done.cancelled() and done.exception() is None:
        callback(done.result())
