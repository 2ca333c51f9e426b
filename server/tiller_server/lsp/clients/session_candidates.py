"""Which session a client means, in the order in which they are tried. Pure."""

from collections.abc import Sequence
from typing import Final

from tiller_server.lsp.wire.capabilities import SessionById

LATEST: Final = "latest"
NEW: Final = "new"
NONE: Final = "none"
SessionOpenOption = str | SessionById | None
"""Value of `session.open` in a client's options at the start; None: absent."""


def session_candidates(
    asked: str | None, *, bound: str | None, opening: SessionOpenOption
) -> Sequence[str]:
    """Return ids, `latest` or `new`, in order of preference; the next one applies when a session no longer exists.

    Args:
        asked: Session that the request itself names; no other counts then.
        bound: The session that this window had last in this folder.
        opening: Choice of the client for requests that name no session.
    """
    if asked is not None:
        return (asked,)
    if isinstance(opening, SessionById):
        return (opening.id,)
    last = LATEST if opening in {None, LATEST} else NEW
    return (last,) if bound is None else (bound, last)
