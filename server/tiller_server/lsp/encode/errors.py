"""The core's errors as answers on the wire."""

from collections.abc import Generator
from contextlib import contextmanager

from agent_core.kernel.errors import (
    ArgumentsInvalid,
    AttachmentRefused,
    ProviderError,
    QueueFull,
    RunMismatch,
    StaleText,
    TillerError,
    ToolSetInvalid,
    UsageError,
)
from tiller_server.lsp.jsonrpc.errors import (
    CONTENT_MODIFIED,
    INVALID_PARAMS,
    REQUEST_FAILED,
    RpcError,
    unwrapped,
)

RETRY_AFTER_MS = 1000
"""When a queue that is full may have room again: a turn takes seconds."""


def to_rpc_error(error: TillerError, **more: object) -> RpcError:
    """Return the answer for an error; `more` goes into its data."""
    data: dict[str, object] = {"kind": error.kind, "retryable": error.retryable, **more}
    if not isinstance(error, RunMismatch):
        # What was expected says something beside what is there, and of nothing else.
        data = {key: one for key, one in data.items() if key not in {"expected", "actual"}}
    if isinstance(error, QueueFull) and error.passes:
        data |= {"kind": "Overloaded", "retryable": True, "retryAfterMs": RETRY_AFTER_MS}
    if isinstance(error, ProviderError):
        data["kind"] = error.wire_kind
        if error.status is not None:
            data["httpStatus"] = error.status
    if error.happened is not None:
        data["happened"] = error.happened
    return RpcError(_code(error), str(error), data)


@contextmanager
def translated_errors(**details: object) -> Generator[None]:
    """Convert an error of the core into the error response; `details` go into its data.

    So is one that is alone in an exception group, because a handler may run in a task group.
    """
    try:
        yield
    except (TillerError, ExceptionGroup) as error:
        inner = unwrapped(error)
        if not isinstance(inner, TillerError):
            raise
        raise to_rpc_error(inner, **details) from error


def _code(error: TillerError) -> int:
    match error:
        case RunMismatch() | StaleText():
            return CONTENT_MODIFIED
        case ToolSetInvalid() | ArgumentsInvalid() | AttachmentRefused():
            return INVALID_PARAMS
        case UsageError() if type(error) is UsageError:
            return INVALID_PARAMS
        case _:
            return REQUEST_FAILED
