"""Applies the changes of a document to its text, with the same result as the daemon's own mirror."""

from collections.abc import Iterable

from tiller_server.daemon.shim.message import JsonDict, as_object
from tiller_server.lsp.documents.positions import LineIndex, PositionEncoding


def apply_changes(text: str, changes: Iterable[JsonDict], *, encoding: str) -> str:
    """Return the text after some content changes, each of which refers to the text after the one before. Pure.

    Args:
        text: Text before the changes.
        changes: Valid changes: `text`, and `range` with integers or no range.
        encoding: Position encoding; an unknown one counts as LSP's default, utf-16.
    """
    lines = LineIndex(_mended(text), _encoding_of(encoding))
    for change in changes:
        new = str(change.get("text"))
        place = as_object(change.get("range"))
        if place is None:
            lines = LineIndex(_mended(new), lines.encoding)
            continue
        ends = [_offset(lines, as_object(place.get(name)) or {}) for name in ("start", "end")]
        lines = lines.spliced(min(ends), max(ends), new)
        if not new.isascii():
            lines = LineIndex(_mended(lines.text), lines.encoding)
    return lines.text


def _offset(lines: LineIndex, position: JsonDict) -> int:
    line, character = position.get("line"), position.get("character")
    return lines.offset(
        line if isinstance(line, int) else 0, character if isinstance(character, int) else 0
    )


def _encoding_of(encoding: str) -> PositionEncoding:
    match encoding:
        case "utf-8" | "utf-32":
            return encoding
        case _:
            return "utf-16"


def _mended(text: str) -> str:
    """Join halves of a character that came in two changes."""
    try:
        _ = text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
