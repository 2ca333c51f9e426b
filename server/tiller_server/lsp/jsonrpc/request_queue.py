"""The client's calls in flight: a task for each message, one answer for each request."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from tiller_server.lsp.jsonrpc.errors import (
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    REQUEST_FAILED,
    SERVER_CANCELLED,
    RpcError,
    error_for,
)
from tiller_server.lsp.jsonrpc.messages import RequestId

MAX_IN_FLIGHT: Final = 1024

_log = logging.getLogger(__name__)

HandlerCoroutine = Coroutine[Any, Any, object]


class RequestQueue:
    """Owns the tasks that handlers run in.

    A request is answered exactly once: with what its handler returned, also after it was
    cancelled; with -32800 when cancelling ended it, and with -32802 when the end of the
    connection did; with an error when it raised.
    """

    def __init__(self, answer: Callable[[RequestId, object], None]) -> None:
        """Start with nothing in flight.

        Args:
            answer: Sends a result or an `RpcError` under an id. Must not raise.
        """
        self._answer = answer
        self._open: dict[RequestId, asyncio.Task[None]] = {}
        self._is_closing = False
        # A task group would wait for ever for a handler that swallows its cancellation, and
        # with it the end of the connection. `close` waits for these tasks, but not for ever.
        self._tasks: set[asyncio.Task[None]] = set()

    def refusal(self, request_id: RequestId) -> RpcError | None:
        """Return why a request may not start beside those in flight."""
        if request_id in self._open:
            return RpcError(INVALID_REQUEST, f"The id {request_id!r:.80} is still in use.")
        if len(self._open) < MAX_IN_FLIGHT:
            return None
        return RpcError(
            REQUEST_FAILED,
            f"{MAX_IN_FLIGHT} requests are in flight; send this one again later.",
            {"kind": "Overloaded", "retryable": True, "retryAfterMs": 1000},
        )

    def start_request(self, request_id: RequestId, *, method: str, work: HandlerCoroutine) -> None:
        """Run the work and answer the request with its outcome."""
        task = self._start(self._run_request(request_id, method, work), method=method)
        self._open[request_id] = task
        task.add_done_callback(partial(self._request_done, request_id, work))

    def start_notification(self, *, method: str, work: HandlerCoroutine) -> None:
        """Run the work in a task; its exceptions go to the log."""
        task = self._start(_run_notification(method, work), method=method)
        task.add_done_callback(lambda _: work.close())

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel a request; say whether there was one."""
        task = self._open.get(request_id)
        return task is not None and task.cancel()

    def cancel_others(self, *, than: asyncio.Task[None] | None) -> None:
        """Cancel every request but the one that the given task runs."""
        for task in self._open.values():
            if task is not than:
                task.cancel()

    async def close(self, *, grace_s: float) -> None:
        """Cancel everything and wait for it, at most `grace_s` seconds."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        if not self._tasks:
            return
        _, stubborn = await asyncio.wait(self._tasks, timeout=grace_s)
        if stubborn:
            names = ", ".join(sorted(task.get_name() for task in stubborn))
            _log.error("Handlers ignored their cancellation and were left behind: %s.", names)

    def _start(self, work: Coroutine[Any, Any, None], *, method: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=method)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_request(
        self, request_id: RequestId, method: str, work: HandlerCoroutine
    ) -> None:
        try:
            outcome = await work
        except asyncio.CancelledError:
            outcome = self._cancelled()
        except (Exception, SystemExit) as failure:  # noqa: BLE001 - one handler must not end the connection
            outcome = error_for(failure, method=method)
            if outcome is not failure:
                _log.exception("The handler of %r failed.", method)
        # In the same step as the handler's return, so that nothing it set free is queued first.
        self._settle(request_id, outcome)

    def _settle(self, request_id: RequestId, outcome: object) -> None:
        if self._open.pop(request_id, None) is not None:
            self._answer(request_id, outcome)

    def _request_done(
        self, request_id: RequestId, work: HandlerCoroutine, task: asyncio.Task[None]
    ) -> None:
        # A task that is cancelled before its first step runs none of its own code.
        work.close()
        if self._open.get(request_id) is task:
            self._settle(request_id, self._cancelled())

    def _cancelled(self) -> RpcError:
        if not self._is_closing:
            return RpcError(REQUEST_CANCELLED, "The request was cancelled.")
        # Editors hide -32800, the answer to their own cancellation.
        data = {"kind": "Internal", "retryable": True, "retriggerRequest": True}
        return RpcError(SERVER_CANCELLED, "The server ends. Send the request again.", data)


async def _run_notification(method: str, work: HandlerCoroutine) -> None:
    try:
        await work
    except asyncio.CancelledError:
        return
    except RpcError as error:
        _log.warning("The notification %r was dropped: %s", method, error.message)
    except (Exception, SystemExit):  # noqa: BLE001 - one handler must not end the connection
        _log.exception("The handler of %r failed.", method)
