"""Which failed model calls are worth another try."""

from agent_core.kernel.errors import ProviderError

TOO_LARGE = 413
"""A request bigger than a whole minute's allowance: waiting does not shrink it."""


def is_retryable(error: ProviderError) -> bool:
    """Return whether the same request may succeed by waiting alone.

    Overflow is not: it is answered by compaction. A cut or garbled stream is, for nothing of it was kept.
    """
    match error.reason:
        case "network" | "timeout" | "server" | "protocol":
            return True
        case "rate_limit":
            return error.status != TOO_LARGE and "request too large" not in str(error).lower()
        case "auth" | "quota" | "context_overflow" | "not_found" | "invalid_request" | "refused":
            return False
