"""Thoughts in the dialects of Chat Completions: three names for the text, and details that must go back whole."""

from collections.abc import Iterable

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import Thinking

OPAQUE = "reasoning_opaque"
"""Copilot's field for opaque reasoning; Gemini refuses its own tool calls unless the field is returned."""
FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
GROWING = ("text", "summary")
_Json = dict[str, JsonValue]


class ReasoningDetails:
    """Assembler of `reasoning_details` from their pieces."""

    def __init__(self) -> None:
        self._entries: list[_Json] = []
        self._grown: list[dict[str, list[str]]] = []
        self._opaque = ""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to send back but the thought's text."""
        return not self._entries and not self._opaque

    def seal(self, opaque: str) -> None:
        """Store the opaque value that replaces a thought's withheld text."""
        self._opaque = opaque

    def add(self, entry: JsonObject) -> None:
        """Add one piece: more of the last entry, or a new one."""
        if not self._entries or not _continues(self._entries[-1], entry):
            self._entries.append({})
            self._grown.append({})
        last, grown = self._entries[-1], self._grown[-1]
        for key, value in entry.items():
            if key in GROWING and isinstance(value, str):
                grown.setdefault(key, []).append(value)
            elif value is not None or key not in last:
                last[key] = value

    def signature(self, field: str | None) -> str | None:
        """Return what must be kept so that the thought can go back: the field's name, with details as JSON."""
        if self.is_empty:
            return field
        kept: _Json = {}
        if self._entries:
            kept["details"] = [
                {**entry, **{key: "".join(pieces) for key, pieces in grown.items()}}
                for entry, grown in zip(self._entries, self._grown, strict=True)
            ]
        if field:
            kept["field"] = field
        if self._opaque:
            kept["opaque"] = self._opaque
        return json.encode(kept).decode()


def replayed(thoughts: Iterable[Thinking]) -> JsonObject:
    """Return the fields that bring the thoughts of an answer back to the model that had them."""
    fields: _Json = {}
    texts: dict[str, str] = {}
    details: list[JsonValue] = []
    for thought in thoughts:
        kept = _kept(thought.signature or "")
        field = kept.get("field")
        if isinstance(field, str) and field in FIELDS:
            texts[field] = texts.get(field, "") + thought.text
        entries = kept.get("details")
        details.extend(entries if isinstance(entries, list) else ())
        opaque = kept.get("opaque")
        if isinstance(opaque, str):
            fields[OPAQUE] = opaque
    fields.update(texts)
    if details:
        fields["reasoning_details"] = details
    return fields


def _kept(signature: str) -> JsonObject:
    """Read what `ReasoningDetails.signature` wrote."""
    if not signature.startswith("{"):
        return {"field": signature}
    try:
        return json.as_object(json.decode(signature))
    except ValueError:
        return {}


def _continues(last: JsonObject, entry: JsonObject) -> bool:
    same = all(last.get(key) == entry.get(key) for key in ("type", "index"))
    return same and entry.get("id") in (None, last.get("id"))
