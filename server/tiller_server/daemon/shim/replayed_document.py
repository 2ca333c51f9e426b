"""An open document, kept so that a new daemon can receive it: the `didOpen` and the changes since."""

from collections import deque

from tiller_server.daemon.shim.message import (
    JsonDict,
    RelayedMessage,
    as_list,
    as_object,
    notification,
)

MAX_CHANGES = 1_000
SPARE_BYTES = 64 * 1024
AT_ONCE = 8
"""So many changes at most are folded into the text for each that comes: no key waits for a thousand of them."""


class ReplayedDocument:
    """One document. Changes are kept as they came; when they outgrow its text they are folded into it."""

    def __init__(self, opened: RelayedMessage) -> None:
        document = as_object((opened.params or {}).get("textDocument")) or {}
        self._document = document
        self._opened: bytes | None = opened.body
        """As the editor sent it; None since something was folded into it."""
        self._changes: deque[RelayedMessage] = deque()
        self._changes_bytes = 0
        self._is_odd = not isinstance(document.get("text"), str)

    def change(self, change: RelayedMessage, *, encoding: str) -> None:
        """Record a change. Changes that have outgrown the text are folded into it.

        Args:
            change: The whole `textDocument/didChange`.
            encoding: Position encoding: `utf-8`, `utf-16` or `utf-32`.
        """
        changes = _changes_of(change)
        if changes is None:
            # What a server makes of it is not known here: from now on all is kept as it came.
            self._is_odd = True
        elif not self._is_odd and any(_range_of(one) is None for one in changes):
            self._changes.clear()
            self._changes_bytes = 0
        self._changes.append(change)
        self._changes_bytes += len(change.body)
        folded = 0
        while not self._is_odd and folded < AT_ONCE and self._has_outgrown():
            self._fold(encoding)
            folded += 1

    def save(self, text: object) -> None:
        """Store the text that an editor sends with a save; a save without text changes nothing."""
        if isinstance(text, str) and not self._is_odd:
            version = self._version()
            self._changes.clear()
            self._changes_bytes = 0
            self._become(text, version)

    def messages(self) -> list[bytes]:
        """Return what a server must be told to have the same text and version."""
        opened = self._opened
        if opened is None:
            opened = notification("textDocument/didOpen", {"textDocument": self._document})
        return [opened, *(one.body for one in self._changes)]

    def _has_outgrown(self) -> bool:
        most = 2 * len(str(self._document["text"])) + SPARE_BYTES
        return len(self._changes) > MAX_CHANGES or (
            len(self._changes) > 1 and self._changes_bytes > most
        )

    def _fold(self, encoding: str) -> None:
        from tiller_server.daemon.shim.content_changes import apply_changes  # noqa: PLC0415 - few documents change so much

        change = self._changes.popleft()
        self._changes_bytes -= len(change.body)
        text = apply_changes(
            str(self._document["text"]), _changes_of(change) or [], encoding=encoding
        )
        self._become(text, _version_of(change))

    def _become(self, text: str, version: object) -> None:
        self._document = {**self._document, "text": text, "version": version}
        self._opened = None

    def _version(self) -> object:
        return _version_of(self._changes[-1]) if self._changes else self._document.get("version")


def _version_of(change: RelayedMessage) -> object:
    return (as_object((change.params or {}).get("textDocument")) or {}).get("version")


def _changes_of(change: RelayedMessage) -> list[JsonDict] | None:
    """Return the changes of a message, or None when one of them cannot be followed."""
    changes = [as_object(one) for one in as_list((change.params or {}).get("contentChanges"))]
    whole = [one for one in changes if one is not None and _is_sound(one)]
    return whole if whole and len(whole) == len(changes) else None


def _is_sound(change: JsonDict) -> bool:
    if not isinstance(change.get("text"), str):
        return False
    return change.get("range") is None or _range_of(change) is not None


def _range_of(change: JsonDict) -> tuple[int, int, int, int] | None:
    place = as_object(change.get("range")) or {}
    ends = [as_object(place.get(name)) or {} for name in ("start", "end")]
    numbers = [end.get(name) for end in ends for name in ("line", "character")]
    whole = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]
    if len(whole) < len(numbers):
        return None
    return whole[0], whole[1], whole[2], whole[3]
