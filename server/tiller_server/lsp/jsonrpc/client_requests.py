"""Our requests to the client that wait for its answer."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from tiller_server.lsp.jsonrpc.errors import INTERNAL_ERROR, RpcError
from tiller_server.lsp.jsonrpc.messages import JsonRpcResponse, as_object

# Ids of the two directions never meet in one table, but a client may keep them in one.
_ID_PREFIX: Final = "tiller-"

_log = logging.getLogger(__name__)


class ClientRequests:
    """Sends requests and hands each its answer."""

    def __init__(self, send: Callable[[dict[str, object]], None]) -> None:
        """Start with nothing asked.

        Args:
            send: Sends a message; raises ValueError or TypeError when JSON cannot say it.
        """
        self._send = send
        self._waiting: dict[str, asyncio.Future[object]] = {}
        self._count = 0
        self._is_closed = False

    async def ask(self, method: str, params: object, *, timeout_s: float | None) -> object:
        """Ask the client and wait for its answer; None waits for as long as it takes.

        A question that nobody waits for any more is withdrawn with `$/cancelRequest`, and a
        late answer to it is ignored.

        Raises:
            RpcError: The client answered with an error.
            TimeoutError: It did not answer in time.
            ConnectionError: The connection is closed, or was while waiting.
        """
        request_id, answer = self.begin(method, params)
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            why = f"the client did not answer {method!r} within {timeout_s} s"
            raise TimeoutError(why) from None
        finally:
            self.withdraw(request_id)

    def begin(self, method: str, params: object) -> tuple[str, asyncio.Future[object]]:
        """Send a request; give its id and the future of its result.

        Raises:
            ConnectionError: The connection is closed.
        """
        if self._is_closed:
            why = f"cannot ask {method!r}: the connection is closed"
            raise ConnectionError(why)
        self._count += 1
        request_id = f"{_ID_PREFIX}{self._count}"
        message: dict[str, object] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None:
            message["params"] = params
        self._send(message)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        return request_id, answer

    def withdraw(self, request_id: str) -> None:
        """Report the client that nobody waits for the answer any more; nothing if it came."""
        if self._waiting.pop(request_id, None) is None or self._is_closed:
            return
        params = {"id": request_id}
        self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})

    def settle(self, response: JsonRpcResponse) -> None:
        """Hand an answer to whoever asked; ignore one that nobody waits for."""
        answer = self._waiting.pop(response.id, None) if isinstance(response.id, str) else None
        if answer is None or answer.done():
            _log.debug("An answer came that nobody waits for: %r.", response.id)
            return
        if response.error is None:
            answer.set_result(response.result)
        else:
            answer.set_exception(_as_error(response.error))

    def close(self) -> None:
        """Fail everything that waits."""
        self._is_closed = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the connection was closed"))
        self._waiting.clear()


def _as_error(error: object) -> RpcError:
    fields = as_object(error) or {}
    code, message = fields.get("code"), fields.get("message")
    return RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        message if isinstance(message, str) else "The client failed without saying why.",
        as_object(fields.get("data")),
    )
