"""Output of extensions for clients that do not follow the events: a message, or a line in the chat file."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.events import UiNotify
from agent_core.extensions.ports import ViewKind
from agent_core.kernel.text import readable
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import AttachedClient, OpenSession

TELL: Final = "window/showMessage"
TYPES: Final[Mapping[object, int]] = {"error": 1, "warning": 2, "info": 3}
MOST_CHARS: Final = 2_000
IN_CHAT: Final[frozenset[ViewKind]] = frozenset({"notify", "status", "widget", "editorText"})
EVERYWHERE: Final[frozenset[ViewKind]] = frozenset({"notify"})


def can_display(open_session: OpenSession, what: ViewKind) -> bool:
    """Return whether a client of a session shows such a thing; one that follows the events counts as showing all."""
    if any(_is_subscribed(client, open_session) for client in open_session.attached_clients):
        return True
    if _chat_clients(open_session):
        return what in IN_CHAT
    return bool(open_session.attached_clients) and what in EVERYWHERE


async def forward(client: ConnectedClient, open_session: OpenSession) -> None:
    """Report a client what extensions tell, as plain messages, for as long as it is there and has no better way."""
    reader = open_session.session.subscribe(only=(UiNotify,))
    client.state.readers.append(reader)
    async for stamped in reader:
        event = stamped.event
        if (
            isinstance(event, UiNotify)
            and not _is_subscribed(client, open_session)
            and client not in _chat_clients(open_session)
        ):
            params = {
                "type": TYPES.get(event.view.get("level"), 3),
                "message": _message_text(event),
            }
            _ = client.connection.notify(TELL, params)


def _message_text(event: UiNotify) -> str:
    # The name stands before the words: nobody can pass for Tiller itself.
    text = readable(f"{event.extension}: {event.view.get('text')}")
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}…"


def _is_subscribed(client: AttachedClient, open_session: OpenSession) -> bool:
    return any(one.follows(open_session) for one in client.subscriptions.values())


def _chat_clients(open_session: OpenSession) -> Sequence[AttachedClient]:
    chat = open_session.kept.chat
    return () if chat is None else chat.clients
