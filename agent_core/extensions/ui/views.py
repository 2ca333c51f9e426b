"""Views of extensions, independent of their presentation: each client renders them in its own way."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value

TextViewStyle: TypeAlias = Literal["plain", "markdown", "code"]


class TextView(Value, frozen=True, kw_only=True):
    """Words."""

    text: str
    title: str = ""
    style: TextViewStyle = "plain"


class Row(Value, frozen=True, kw_only=True):
    """One line of a list."""

    text: str
    detail: str = ""
    done: bool | None = None
    """Shown as a box that is ticked or not; None: there is no box."""


class ListView(Value, frozen=True, kw_only=True):
    """Lines one below the other."""

    rows: Sequence[Row]
    title: str = ""


class TableView(Value, frozen=True, kw_only=True):
    """Cells in columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


View: TypeAlias = TextView | ListView | TableView


def view_json(view: View | str) -> JsonObject:
    """Return a view as JSON; plain words are a view as well."""
    match view:
        case str():
            return {"kind": "text", "text": view, "style": "plain"}
        case TextView():
            made: JsonObject = {"kind": "text", "text": view.text, "style": view.style}
        case ListView():
            made = {"kind": "list", "rows": [_row(one) for one in view.rows]}
        case TableView():
            made = {
                "kind": "table",
                "head": list(view.head),
                "rows": [list(one) for one in view.rows],
            }
        case _:
            assert_never(view)
    return {**made, "title": view.title} if view.title else made


def _row(row: Row) -> JsonObject:
    made: JsonObject = {"text": row.text}
    if row.detail:
        made = {**made, "detail": row.detail}
    return made if row.done is None else {**made, "done": row.done}
