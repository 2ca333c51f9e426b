"""What a list of sessions shows of each: counted from the lines of its file."""

from collections.abc import Mapping
from pathlib import Path

from agent_core.kernel import JsonObject, parse_rfc3339
from agent_core.messages import Text
from agent_core.messages.block_codec import decode_user_content
from agent_core.storage.port import SessionSummary
from agent_core.transcript.entries import Header

PREVIEW_CHARS = 200


class Tally:
    """Takes the JSON of a session's entries one by one and gives its summary."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._messages = 0
        self._title = ""
        self._preview = ""
        self._last: JsonObject | None = None

    def take(self, raw: JsonObject) -> None:
        """Count one entry."""
        self._last = raw
        match raw:
            case {"type": "message", "message": message}:
                self._messages += 1
                if not self._preview and isinstance(message, Mapping):
                    self._preview = _words_of_user(message)
            case {"type": "session_info"}:
                name = raw.get("name")
                self._title = " ".join(name.split()) if isinstance(name, str) else ""
            case _:
                pass

    def summary(self, location: Path | None) -> SessionSummary:
        """Give what was counted."""
        header = self._header
        return SessionSummary(
            session=header.id,
            location=location,
            cwd=header.cwd,
            created_ms=header.at_ms,
            modified_ms=written_ms(self._last, otherwise=header.at_ms),
            messages=self._messages,
            title=self._title or None,
            preview=self._preview,
        )


def written_ms(raw: JsonObject | None, *, otherwise: int) -> int:
    """Say when an entry was written."""
    stamp = None if raw is None else raw.get("timestamp")
    try:
        return parse_rfc3339(stamp) if isinstance(stamp, str) else otherwise
    except (ValueError, OverflowError):
        return otherwise


def _words_of_user(message: JsonObject) -> str:
    if message.get("role") != "user":
        return ""
    content, _ = decode_user_content(message.get("content"))
    text = " ".join(part.text for part in content if isinstance(part, Text))
    return " ".join(text[: PREVIEW_CHARS * 4].split())[:PREVIEW_CHARS]
