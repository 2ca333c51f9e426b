"""Summary of a session in a list of sessions: counted from the lines of its file."""

from collections.abc import Mapping
from pathlib import Path

from agent_core.kernel import JsonObject, parse_rfc3339
from agent_core.messages import Text
from agent_core.messages.attachments import user_texts
from agent_core.messages.codec import decode_user_content
from agent_core.storage.port import SessionSummary
from agent_core.transcript.entries import Header

PREVIEW_CHARS = 200
_SPEAKERS = frozenset({"user", "assistant"})


class SessionSummaryBuilder:
    """Counter that reads the JSON of a session's entries one by one and returns its summary.

    It continues from the summary of earlier entries, if there is one.
    """

    def __init__(self, header: Header, *, previous: SessionSummary | None = None) -> None:
        self._header = header
        self._said_ms = 0 if previous is None or not previous.messages else previous.modified_ms
        self._messages = 0 if previous is None else previous.messages
        self._title = "" if previous is None else previous.title or ""
        self._preview = "" if previous is None else previous.preview
        self._model = None if previous is None else previous.model

    def take(self, raw: JsonObject) -> None:
        """Count one entry."""
        match raw:
            case {"type": "message", "message": message}:
                self._messages += 1
                if isinstance(message, Mapping):
                    self._take_message(message, raw)
            case {"type": "session_info"}:
                name = raw.get("name")
                self._title = " ".join(name.split()) if isinstance(name, str) else ""
            case {"type": "model_change", "provider": str(provider), "modelId": str(model)}:
                self._model = f"{provider}/{model}"
            case _:
                pass

    def summary(self, location: Path | None) -> SessionSummary:
        """Return what was counted."""
        header = self._header
        return SessionSummary(
            session=header.id,
            location=location,
            cwd=header.cwd,
            created_ms=header.at_ms,
            modified_ms=self._said_ms or header.at_ms,
            messages=self._messages,
            title=self._title or None,
            preview=self._preview,
            model=self._model,
            parent=header.parent_session,
        )

    def _take_message(self, message: JsonObject, raw: JsonObject) -> None:
        role = message.get("role")
        if role in _SPEAKERS:
            self._said_ms = max(self._said_ms, _said_ms(message, raw))
        if role == "assistant":
            provider, model = message.get("provider"), message.get("model")
            if isinstance(provider, str) and isinstance(model, str) and provider and model:
                self._model = f"{provider}/{model}"
        if not self._preview:
            self._preview = _user_preview(message)


def written_ms(raw: JsonObject | None, *, otherwise: int) -> int:
    """Return when an entry was written, in ms since the epoch; `otherwise` if it has no valid timestamp."""
    stamp = None if raw is None else raw.get("timestamp")
    try:
        return parse_rfc3339(stamp) if isinstance(stamp, str) else otherwise
    except (ValueError, OverflowError):
        return otherwise


def _said_ms(message: JsonObject, raw: JsonObject) -> int:
    at_ms = message.get("timestamp")
    return written_ms(raw, otherwise=at_ms if isinstance(at_ms, int) else 0)


def _user_preview(message: JsonObject) -> str:
    if message.get("role") != "user":
        return ""
    content, _ = decode_user_content(message.get("content"))
    text = " ".join(user_texts(part.text for part in content if isinstance(part, Text)))
    return " ".join(text[: PREVIEW_CHARS * 4].split())[:PREVIEW_CHARS]
