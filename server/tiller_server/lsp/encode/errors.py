"""The core's errors as answers on the wire."""

from agent_core.kernel.errors import (
    ArgumentsInvalid,
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


def _code(error: TillerError) -> int:
    match error:
        case RunMismatch() | StaleText():
            return CONTENT_MODIFIED
        case ToolSetInvalid() | ArgumentsInvalid():
            return INVALID_PARAMS
        case UsageError() if type(error) is UsageError:
            return INVALID_PARAMS
        case _:
            return REQUEST_FAILED
