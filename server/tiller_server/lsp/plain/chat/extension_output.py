"""Output of extensions as pieces of the chat file."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from agent_core.events import UiEditorText, UiEvent, UiNotify, UiStatus, UiTitle, UiWidget
from agent_core.kernel import JsonValue
from agent_core.kernel.json import as_object
from agent_core.kernel.text import cell_count
from tiller_server.lsp.plain.chat.format import ChatPiece, escaped
from tiller_server.lsp.plain.chat.pieces import line

WIDEST: Final = 40
"""Characters to which the cells of a column are padded at most."""


class ExtensionOutputRenderer:
    """Follows the output of extensions; unchanged output is not repeated."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str, str], str] = {}

    def render(self, event: UiEvent) -> Iterator[ChatPiece]:
        """Return what an event brings into the file."""
        who, view = event.extension, event.view
        match event:
            case UiNotify():
                yield from _said(who, _text(view.get("text")))
            case UiStatus():
                text = _text(view.get("text"))
                if self._is_new(("status", who, _text(view.get("key"))), text) and text:
                    yield line(f"{who} · {text}")
            case UiWidget():
                text = view_text(as_object(view.get("view")))
                if self._is_new(("widget", who, _text(view.get("key"))), text) and text:
                    yield from _said(who, text)
            case UiEditorText():
                yield from _said(f"{who} suggests to say", _text(view.get("text")))
            case UiTitle():
                # A file has no window to name.
                return

    def _is_new(self, key: tuple[str, str, str], text: str) -> bool:
        before = self._shown.get(key, "")
        self._shown[key] = text
        return before != text


def view_text(view: Mapping[str, JsonValue]) -> str:
    """Return a view as lines of Markdown; of a kind that is not known nothing."""
    rows: Any = view.get("rows")
    title = _text(view.get("title"))
    match view.get("kind"):
        case "text":
            lines = [_text(view.get("text"))]
        case "list":
            lines = [_row(one) for one in rows or ()]
        case "table":
            head: Any = view.get("head")
            lines = _table(head or (), rows or ())
        case _:
            lines = []
    return "\n".join(filter(None, (title, *lines)))


def _said(who: str, text: str) -> Iterator[ChatPiece]:
    if "\n" in text:
        yield ChatPiece(kind="block", text=escaped(f"{who}:\n\n{text}".strip()))
    elif text:
        yield line(f"{who}: {text}")


def _row(row: JsonValue) -> str:
    fields = as_object(row)
    done = fields.get("done")
    box = "" if not isinstance(done, bool) else "[x] " if done else "[ ] "
    detail = _text(fields.get("detail"))
    return f"- {box}{_text(fields.get('text'))}" + (f" ({detail})" if detail else "")


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table; a terminal shows them as they are, so columns are aligned."""
    table = [[str(cell) for cell in row or ()] for row in (head, *rows)]
    columns = zip_longest(*table, fillvalue="")
    widths = [min(max(3, *map(cell_count, column)), WIDEST) for column in columns]
    table.insert(1, ["-" * width for width in widths[: len(head)]])
    return [f"| {' | '.join(map(_padded, row, widths))} |" for row in table]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_count(cell))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
