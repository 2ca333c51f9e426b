"""The errors and answers of JSON-RPC, as handlers raise and return them."""

from collections.abc import Callable, Mapping

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
CONTENT_MODIFIED = -32801
SERVER_CANCELLED = -32802
REQUEST_FAILED = -32803


class RpcError(Exception):
    """Error response: raised by a handler to send it, and raised in a caller that received it.

    Attributes:
        code: One of the constants of this module.
        message: One sentence for a person.
        data: Data that a program may act on (`kind`, `retryable` and so on), or None.
    """

    def __init__(self, code: int, message: str, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = None if data is None else dict(data)

    def wire(self) -> dict[str, object]:
        """Return the error as the `error` member of a response."""
        shape: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            shape["data"] = self.data
        return shape


class ResultThen:
    """A result with something to do the moment its response has been queued.

    A handler returns it when what follows must not reach the client before the answer does:
    `then` runs in the same step that queued the response, so nothing can come between.
    """

    __slots__ = ("result", "then")

    def __init__(self, result: object, *, then: Callable[[], None]) -> None:
        self.result = result
        self.then = then


def error_for(failure: BaseException, *, method: str) -> RpcError:
    """Translate what a handler raised into the error its client may see.

    Only an `RpcError` speaks for itself, also out of an exception group that holds nothing
    else. Of anything else the client learns the class and no more: messages and tracebacks
    carry paths and secrets, and belong into the log.
    """
    inner = unwrapped(failure)
    if isinstance(inner, RpcError):
        return inner
    return RpcError(
        INTERNAL_ERROR,
        f"The server failed on {method!r} ({type(inner).__name__}); its log says more.",
        {"kind": "Internal", "retryable": False},
    )


def unwrapped(failure: BaseException) -> BaseException:
    """Return the only exception of a group, else the failure itself."""
    match failure:
        case BaseExceptionGroup(exceptions=(only,)):
            return unwrapped(only)
        case _:
            return failure
