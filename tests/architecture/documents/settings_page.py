"""The table of all settings in docs/settings.md, made from their schema and from the rules of their layers.

`python -m tests.architecture.documents.settings_page` writes it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_core.kernel.json import as_object, encode
from agent_core.resources.settings.layers import CEILINGS, FLAGS, LADDERS, NEVER_EDITOR, USER_ONLY
from agent_core.resources.settings.values import settings_schema
from tests.support.harness.shared import ROOT

PAGE: Final = ROOT / "docs/settings.md"
BEGIN: Final = "<!-- settings:begin -->\n"
END: Final = "<!-- settings:end -->\n"
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
    for name, raw in as_object(schema["properties"]).items():
        one = as_object(raw)
        shape = as_object(definitions.get(str(one.get("$ref", "")).rsplit("/", 1)[-1]))
        if "properties" not in shape:
            alone.append(_row((name,), one))
            continue
        about = str(shape.get("description") or "").split("\n", 1)[0]
        rows = [
            _row((name, key), as_object(field))
            for key, field in as_object(shape["properties"]).items()
        ]
        groups.append(f"\n### `{name}`\n\n{about}\n\n{_head()}{''.join(rows)}")
    return f"\n### Single settings\n\n{_head()}{''.join(alone)}{''.join(groups)}"


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
    if key in USER_ONLY or key[0] == FLAGS:
        return "you"
    if key in NEVER_EDITOR:
        return "you, project"
    if key in LADDERS or key in CEILINGS:
        return "all; a project and an editor only stricter"
    return "all"


if __name__ == "__main__":
    _ = PAGE.write_text(page(), encoding="utf-8")
