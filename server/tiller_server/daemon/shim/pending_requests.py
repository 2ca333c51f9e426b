"""The requests that wait for an answer, in both directions, and those that wait for a daemon."""

from tiller_server.daemon.shim.message import (
    RelayedMessage,
    as_object,
    error,
    key_of,
    notification,
    result,
)

SERVER_CANCELLED = -32802
REQUEST_CANCELLED = -32800
_IDEMPOTENT_PROMPTS = frozenset({"agent/prompt", "agent/steer", "agent/followUp"})
_READ_ONLY = frozenset(
    {
        "agent/model/list",
        "agent/session/list",
        "agent/session/read",
        "agent/session/stats",
        "agent/session/tree",
        "agent/status",
    }
)


class PendingClientRequest:
    """A request of the editor."""

    __slots__ = ("again", "message")

    def __init__(self, message: RelayedMessage, *, again: bool) -> None:
        self.message = message
        self.again = again
        """Whether a daemon has died on it already."""

    @property
    def may_be_sent_again(self) -> bool:
        """Whether asking twice does what asking once does."""
        method, params = self.message.method, self.message.params or {}
        if self.again:
            return False  # two daemons that die on one request are enough
        if method in _IDEMPOTENT_PROMPTS:
            # Who waits for the whole run is told that it ended, and asks again under the same `messageId`.
            return isinstance(params.get("messageId"), str) and not params.get("wait")
        return method in _READ_ONLY


class PendingClientRequests:
    """Requests of the editor without an answer yet."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingClientRequest] = {}

    def begin(self, message: RelayedMessage, *, again: bool = False) -> None:
        """Record a request that was passed on."""
        if (key := message.key) is not None:
            self._calls[key] = PendingClientRequest(message, again=again)

    def end(self, key: str | None) -> RelayedMessage | None:
        """Record an answer; return the request that it answers, None when there is none."""
        call = self._calls.pop(key, None) if key is not None else None
        return call.message if call is not None else None

    def take_all(self) -> list[PendingClientRequest]:
        """Return them all, the oldest first, and forget them."""
        calls = list(self._calls.values())
        self._calls.clear()
        return calls


class MessageBacklog:
    """Messages that wait for a daemon, in the order of arrival."""

    def __init__(self) -> None:
        self.waiting_bytes = 0
        self._held: list[tuple[bytes, RelayedMessage | None, bool]] = []

    def add(
        self, body: bytes, message: RelayedMessage | None = None, *, again: bool = False
    ) -> None:
        """Hold a message."""
        self._held.append((body, message, again))
        self.waiting_bytes += len(body)

    def drop(self, key: str | None) -> RelayedMessage | None:
        """Remove and return a request that is not wanted any more; None when it is not held."""
        for place, (body, message, _) in enumerate(self._held):
            if message is not None and message.is_request and message.key == key:
                del self._held[place]
                self.waiting_bytes -= len(body)
                return message
        return None

    def messages(self) -> list[RelayedMessage]:
        """Return the held messages that could be read, and go on holding them."""
        return [message for _, message, _ in self._held if message is not None]

    def bodies(self) -> list[bytes]:
        """Return what is held, and go on holding it."""
        return [body for body, _, _ in self._held]

    def take_all(self) -> list[tuple[bytes, RelayedMessage | None, bool]]:
        """Return all with whether it was sent before, and forget it."""
        held, self._held = self._held, []
        self.waiting_bytes = 0
        return held


class PendingServerRequests:
    """Open requests of the daemon to the editor, and those that dead daemons have left behind."""

    def __init__(self) -> None:
        self._open: dict[str, object] = {}
        self._orphans: set[str] = set()
        """Keys of requests of dead daemons; the answers that still arrive are discarded."""
        self._renamed: dict[str, object] = {}
        """Ids that a new daemon has given again, by what the editor knows them as."""
        self._tokens: dict[str, object] = {}
        self._count = 0

    @property
    def has_orphans(self) -> bool:
        """Whether messages must be looked at before they are passed on."""
        return bool(self._orphans or self._renamed)

    def begin(self, message: RelayedMessage) -> None:
        """Record a request that was passed on to the editor."""
        if (key := message.key) is not None:
            self._open[key] = message.id

    def renamed(self, message: RelayedMessage) -> str | None:
        """Return another id for a request whose own id an orphan has; None when it can stay."""
        if message.key not in self._orphans:
            return None
        self._count += 1
        name = f"{message.id}~{self._count}"
        self._renamed[f"s{name}"] = message.id
        return name

    def name_of(self, id_: object) -> object:
        """Return what the editor knows a request of the daemon as."""
        for name, original_id in self._renamed.items():
            if original_id == id_:
                return name[1:]
        return id_

    def settle(self, key: str | None) -> tuple[bool, object]:
        """Record an answer of the editor; return whether a daemon waits for it, and the id there if it differs."""
        if key is None:
            return True, None
        self._open.pop(key, None)
        if key in self._orphans:
            self._orphans.discard(key)
            return False, None
        return True, self._renamed.pop(key, None)

    def progress(self, message: RelayedMessage) -> None:
        """Record lines of progress that are shown."""
        params = message.params or {}
        token, key = params.get("token"), key_of(params.get("token"))
        kind = (as_object(params.get("value")) or {}).get("kind")
        if key is not None and kind == "begin":
            self._tokens[key] = token
        elif key is not None and kind == "end":
            self._tokens.pop(key, None)

    def abandon(self) -> list[bytes]:
        """Return what the editor must be told when the daemon is gone: no dialog and no line outlives it."""
        notifications = [
            notification("$/cancelRequest", {"id": id_}) for id_ in self._open.values()
        ]
        value = {"kind": "end", "message": "the daemon ended"}
        notifications += [
            notification("$/progress", {"token": token, "value": value})
            for token in self._tokens.values()
        ]
        self._orphans.update(self._open)
        self._open.clear()
        self._tokens.clear()
        self._renamed.clear()
        return notifications


def gone(id_: object, *, what: str = "it ended before it could answer") -> bytes:
    """Write the answer to a request that a daemon took with it: ask again."""
    data = {"kind": "Internal", "retryable": True, "retriggerRequest": True}
    return error(id_, SERVER_CANCELLED, f"Tiller's daemon: {what}. Ask again.", dict(data))


def ended(why: str) -> bytes:
    """Write what the user is told when there is no daemon any more, and no other one will be."""
    text = f"Tiller has ended: {why}. Restart the language server."
    return notification("window/showMessage", {"type": 1, "message": text})


def withdrawn(id_: object) -> bytes:
    """Write the answer to a request that the editor has taken back."""
    return error(id_, REQUEST_CANCELLED, "The request was cancelled.")


def nothing(id_: object) -> bytes:
    """Write the answer that says no more than that."""
    return result(id_, None)
