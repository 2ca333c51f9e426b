"""Which session a client means, in the order in which they are tried. Pure."""

from collections.abc import Sequence
from typing import Final

from tiller_server.lsp.wire import SessionById

LATEST: Final = "latest"
NEW: Final = "new"
NONE: Final = "none"
Opening = str | SessionById | None
"""What a client said at the start under `session.open`; None: nothing."""


def candidates(asked: str | None, *, bound: str | None, opening: Opening) -> Sequence[str]:
    """Return ids, `latest` or `new`; one that is not there any more gives way to the next.

    Args:
        asked: What the request itself names; nothing else counts then.
        bound: The session that this window had last in this folder.
        opening: What the client wants when it asks for nothing.
    """
    if asked is not None:
        return (asked,)
    if isinstance(opening, SessionById):
        return (opening.id,)
    last = LATEST if opening in {None, LATEST} else NEW
    return (last,) if bound is None else (bound, last)
