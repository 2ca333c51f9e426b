"""How far an editor may raise the permission mode: never above what the user's own settings allow; and its other wishes."""

from typing import Final

from agent_core.events import Budgets
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.wire.session import ConfigChange

MODES: Final = ("plan", "ask", "auto", "yolo")
OBSERVER: Final = "observer"
"""The role of a client that only watches."""


def check_mode(mode: str, *, allowed: str) -> None:
    """Check that a permission mode is allowed.

    Raises:
        RpcError: The mode allows more than the user's own settings do.
    """
    if mode in MODES and MODES.index(mode) <= MODES.index(allowed):
        return
    message = (
        f"permission mode {mode!r} allows more than your own settings do ({allowed!r}); "
        f"to allow it, set permission.mode there (tiller config mode {mode})"
    )
    raise RpcError(REQUEST_FAILED, message, {"kind": "PermissionDenied", "retryable": False})


def asked_budgets(change: ConfigChange) -> Budgets | None:
    """Return the budgets that a client asks for; None: it leaves them as they are. Null asks for those of the settings."""
    if "budgets" not in change.model_fields_set:
        return None
    given = change.budgets
    if given is None:
        return Budgets()
    return Budgets(usd=given.usd, tokens=given.tokens, turns=given.turns, minutes=given.minutes)


def check_role(role: str | None) -> None:
    """Check that a client may decide.

    Raises:
        RpcError: It attached as an observer.
    """
    if role != OBSERVER:
        return
    message = (
        "this client attached as an observer, which may not decide; attach as an editor or a panel"
    )
    raise RpcError(REQUEST_FAILED, message, {"kind": "PermissionDenied", "retryable": False})
