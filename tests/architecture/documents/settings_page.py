"""The table of all settings in docs/settings.md, made from their schema and from the rules of their layers.

`python -m tests.architecture.documents.settings_page` writes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, encode
from agent_core.resources.settings.layers import (
    CEILINGS,
    LADDERS,
    NEVER_EDITOR,
    USER_GROUPS,
    USER_ONLY,
)
from agent_core.resources.settings.values import settings_schema
from tests.support.harness.shared import ROOT

PAGE: Final = ROOT / "docs/settings.md"
BEGIN: Final = "<!-- settings:begin -->\n"
END: Final = "<!-- settings:end -->\n"
PAGES: Final[Mapping[tuple[str, ...], str]] = {
    ("prompts",): "[prompt files](prompts.md)",
    ("skills",): "[skills](skills.md)",
}
"""Settings that have a page, and the link to it."""
SCALARS: Final[Mapping[str, str]] = {
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "null": "`null`",
}


def tables() -> str:
    """Return a table of the settings that stand alone, and one for each object of settings."""
    schema = settings_schema()
    definitions = as_object(schema["$defs"])
    alone: list[str] = []
    groups: list[str] = []
    for name, field in as_object(schema["properties"]).items():
        if (shape := _shape(as_object(field), definitions)) is not None:
            groups.extend(_group((name,), shape, definitions))
            continue
        alone.append(_row((name,), as_object(field)))
        groups.extend(_group_of_entries((name,), as_object(field), definitions))
    return f"\n### Single settings\n\n{_head()}{''.join(alone)}{''.join(groups)}"


def _group(path: tuple[str, ...], shape: JsonObject, definitions: JsonObject) -> Iterator[str]:
    """Yield the table of an object of settings, then those of the objects in it."""
    about = str(shape.get("description") or "").split("\n", 1)[0]
    rows: list[str] = []
    inner: list[str] = []
    for key, field in as_object(shape["properties"]).items():
        below = (*path, key)
        if (nested := _shape(as_object(field), definitions)) is not None:
            inner.extend(_group(below, nested, definitions))
            continue
        rows.append(_row(below, as_object(field)))
        inner.extend(_group_of_entries(below, as_object(field), definitions))
    table = f"\n{_head()}{''.join(rows)}" if rows else ""
    yield f"\n### `{'.'.join(path)}`\n\n{about}\n{table}"
    yield from inner


def _group_of_entries(
    path: tuple[str, ...], field: JsonObject, definitions: JsonObject
) -> Iterator[str]:
    """Yield the table of the objects that a setting has by their names, if it has any."""
    by_pattern = as_object(field.get("patternProperties"))
    for entry in [*by_pattern.values(), field.get("additionalProperties")]:
        if (shape := _shape(as_object(entry), definitions)) is not None:
            yield from _group((*path, "NAME"), shape, definitions)


def _shape(field: JsonObject, definitions: JsonObject) -> JsonObject | None:
    """Return the definition of an object of settings; None: the field is a value."""
    shape = as_object(definitions.get(str(field.get("$ref", "")).rsplit("/", 1)[-1]))
    return shape if "properties" in shape else None


def page() -> str:
    """Return the page with the tables as they should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables()}\n{END}{after}"


def _head() -> str:
    return "| Setting | Values | Default | Set by | Meaning |\n| --- | --- | --- | --- | --- |\n"


def _row(key: tuple[str, ...], field: Mapping[str, Any]) -> str:
    values = ", ".join(dict.fromkeys(_values(field)))
    default = f"`{encode(field['default']).decode()}`" if "default" in field else ""
    meaning = str(field.get("description") or "").replace("|", "\\|").replace("\n", " ")
    if key in PAGES:
        meaning = f"{meaning} See {PAGES[key]}."
    cells = (f"`{'.'.join(key)}`", values, default, _setters(key), meaning)
    return f"| {' | '.join(cells)} |\n".replace("  |", " |")


def _values(field: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in field:
        yield ", ".join(f"`{one}`" for one in field["enum"])
    elif "anyOf" in field:
        for one in field["anyOf"]:
            yield from _values(one)
    elif field.get("type") == "array":
        yield "list of texts"
    elif field.get("type") == "object" or "$ref" in field or "patternProperties" in field:
        yield "object"
    else:
        yield SCALARS[str(field["type"])] + _range(field)


def _range(field: Mapping[str, Any]) -> str:
    least = field.get("minimum", field.get("exclusiveMinimum"))
    most = field.get("maximum")
    if least is None and most is None:
        return ""
    above = "above " if "exclusiveMinimum" in field else "from "
    return f" {above}{least}" + ("" if most is None else f" to {most}")


def _setters(key: tuple[str, ...]) -> str:
    if key in USER_ONLY or key[0] in USER_GROUPS:
        return "you"
    if key in NEVER_EDITOR:
        return "you, project"
    if key in LADDERS or key in CEILINGS:
        return "all; a project and an editor only stricter"
    return "all"


if __name__ == "__main__":
    _ = PAGE.write_text(page(), encoding="utf-8")
