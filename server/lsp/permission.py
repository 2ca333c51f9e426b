"""How far an editor may raise the permission mode: never above what the user's own settings allow."""

from typing import Final

from server.lsp.rpc import REQUEST_FAILED, RpcError

MODES: Final = ("plan", "ask", "auto", "yolo")


def check_mode(mode: str, *, allowed: str) -> None:
    """Let a mode pass, or say why not.

    Raises:
        RpcError: The mode allows more than the user's own settings do.
    """
    if mode in MODES and MODES.index(mode) <= MODES.index(allowed):
        return
    message = (
        f"permission mode {mode!r} allows more than the user's own settings do ({allowed!r}); "
        'set "permission": {"mode": …} in the user\'s settings.json'
    )
    raise RpcError(REQUEST_FAILED, message, {"kind": "PermissionDenied", "retryable": False})
