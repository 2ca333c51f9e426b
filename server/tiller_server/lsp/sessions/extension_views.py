"""Output of extensions for clients that do not follow the events: a message, or a line in the chat file."""

from collections.abc import Mapping
from typing import Any, Final

from agent_core.events import UiNotify
from agent_core.extensions.ui.view_filter import Shown
from agent_core.kernel.visible_text import readable
from tiller_server.lsp.sessions.client import Front

TELL: Final = "window/showMessage"
TYPES: Final[Mapping[object, int]] = {"error": 1, "warning": 2, "info": 3}
MOST_CHARS: Final = 2_000
IN_CHAT: Final[frozenset[Shown]] = frozenset({"notify", "status", "widget", "editorText"})
EVERYWHERE: Final[frozenset[Shown]] = frozenset({"notify"})


def shows(hosted: Any, what: Shown) -> bool:
    """Return whether a client of a session shows such a thing; one that follows the events counts as showing all."""
    if any(_hears(front, hosted) for front in hosted.fronts):
        return True
    if _chats(hosted):
        return what in IN_CHAT
    return bool(hosted.fronts) and what in EVERYWHERE


async def tell(front: Front, hosted: Any) -> None:
    """Report a client what extensions tell, as plain messages, for as long as it is there and has no better way."""
    reader = hosted.session.subscribe()
    front.has.readers.append(reader)
    async for stamped in reader:
        event = stamped.event
        if (
            isinstance(event, UiNotify)
            and not _hears(front, hosted)
            and front not in _chats(hosted)
        ):
            params = {"type": TYPES.get(event.view.get("level"), 3), "message": _words(event)}
            _ = front.connection.notify(TELL, params)


def _words(event: UiNotify) -> str:
    # The name stands before the words: nobody can pass for Tiller itself.
    text = readable(f"{event.extension}: {event.view.get('text')}")
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}…"


def _hears(front: Front, hosted: Any) -> bool:
    return any(front.has.heard.get(token) is hosted for token in front.subscriptions)


def _chats(hosted: Any) -> tuple[Front, ...]:
    chat = hosted.kept.chat
    return () if chat is None else tuple(chat.fronts)
