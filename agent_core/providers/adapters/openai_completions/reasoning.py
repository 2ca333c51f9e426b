"""Thoughts in the dialects of Chat Completions: three names for the text, and details that must go back whole."""

from collections.abc import Iterable, Sequence

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import Thinking

FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
GROWING = ("text", "summary")
_Json = dict[str, JsonValue]


class ReasoningDetails:
    """Puts the pieces of `reasoning_details` together again."""

    def __init__(self) -> None:
        self._entries: list[_Json] = []

    def add(self, entry: JsonObject) -> None:
        """Take one piece: more of the last entry, or a new one."""
        last = self._entries[-1] if self._entries else None
        if last is None or not _continues(last, entry):
            self._entries.append(dict(entry))
            return
        for key, value in entry.items():
            before = last.get(key)
            if key in GROWING and isinstance(before, str) and isinstance(value, str):
                last[key] = before + value
            elif value is not None:
                last[key] = value

    def signature(self, field: str | None) -> str | None:
        """Give what must be kept so that the thought can go back: the field's name, with details as JSON."""
        if not self._entries:
            return field
        kept: _Json = {"details": list(self._entries)}
        if field:
            kept["field"] = field
        return json.encode(kept).decode()


def replayed(thoughts: Iterable[Thinking]) -> JsonObject:
    """Give the fields that bring the thoughts of an answer back to the model that had them."""
    words: dict[str, str] = {}
    details: list[JsonValue] = []
    for thought in thoughts:
        field, kept = _kept(thought.signature or "")
        details.extend(kept)
        if field is not None:
            words[field] = words.get(field, "") + thought.text
    fields: _Json = dict(words)
    if details:
        fields["reasoning_details"] = details
    return fields


def _kept(signature: str) -> tuple[str | None, Sequence[JsonValue]]:
    """Read what `ReasoningDetails.signature` wrote."""
    if signature in FIELDS:
        return signature, ()
    if not signature.startswith("{"):
        return None, ()
    try:
        kept = json.as_object(json.decode(signature))
    except ValueError:
        return None, ()
    field = kept.get("field")
    details = kept.get("details")
    return (
        field if isinstance(field, str) and field in FIELDS else None,
        details if isinstance(details, list) else (),
    )


def _continues(last: JsonObject, entry: JsonObject) -> bool:
    same = all(last.get(key) == entry.get(key) for key in ("type", "index"))
    return same and entry.get("id") in (None, last.get("id"))
