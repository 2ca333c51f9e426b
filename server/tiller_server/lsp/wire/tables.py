"""The tables of PROTOCOL.md, made from the schema in a notation that reads like TypeScript."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tiller_server.lsp.names import METHODS as SERVED, SENT, TOLD
from tiller_server.lsp.wire.base import Json, JsonObject
from tiller_server.lsp.wire.errors import ERROR_MEANINGS

__all__ = ["fill"]

SECTIONS = ("methods", "events", "errors")
BUILT = frozenset({*SERVED, *TOLD, *SENT})
"""What this release answers or sends; at run time `methods[]` of the server's capability says which it answers."""
EVERY_EVENT = re.compile(r"seq: |at: |type: |(run|turn|item)\??: string|from\?: number")

NOTHING = "none"

Definitions = Mapping[str, JsonObject]


def fill(page: str, document: JsonObject) -> str:
    """Put the generated parts between their markers; a page that is empty becomes the markers alone.

    Raises:
        ValueError: A page lacks a pair of markers.
    """
    made = {
        "methods": _methods(document),
        "events": _events(document),
        "errors": _errors(),
    }
    if not page:
        page = "\n\n".join(f"{_begin(name)}\n{_end(name)}" for name in SECTIONS) + "\n"
    for name in SECTIONS:
        pattern = re.compile(f"({re.escape(_begin(name))}).*?({re.escape(_end(name))})", re.DOTALL)
        inside = f"\n\n{made[name]}\n\n"
        page, count = pattern.subn(lambda found, inside=inside: found[1] + inside + found[2], page)
        if count != 1:
            message = f"PROTOCOL.md must have {_begin(name)!r} and its end once, found {count}"
            raise ValueError(message)
    return page


def _begin(name: str) -> str:
    return f"<!-- {name}:begin -->"


def _end(name: str) -> str:
    return f"<!-- {name}:end -->"


def _methods(document: JsonObject) -> str:
    definitions = _objects(document["$defs"])
    methods = _objects(document["methods"])
    once = {name for name, count in Counter(_references(document)).items() if count == 1}
    inline = {name for name in once if name.endswith(("Params", "Result"))}
    asked: list[str] = []
    asking: list[str] = []
    for name, method in methods.items():
        params = _cell(method["params"], definitions, inline)
        result = _cell(method.get("result"), definitions, inline)
        built = "●" if name in BUILT else ""
        row = f"| {_sort(method)} | `{name}` | {params} | {result} | {built} |"
        if method["direction"] == "client→server":
            asked.append(row)
        else:
            asking.append(row)
    events = {_name(each) for each in _objects(document["events"]).values()}
    types = [
        _declaration(name, definitions)
        for name in definitions
        if name not in inline and name not in events
    ]
    return "\n".join(
        (
            "Client to server (R request, N notification, ● known to this release):",
            "",
            "| | Method | Params | Result | |",
            "| --- | --- | --- | --- | --- |",
            *asked,
            "",
            "Server to client, only if the client declared it (● sent by this release):",
            "",
            "| | Method | Params | Result | |",
            "| --- | --- | --- | --- | --- |",
            *asking,
            "",
            "The types they name. Where words are listed, a vendor's word that begins with `_` may stand",
            "as well, except for the kinds of errors, events, frames and items.",
            "",
            "```ts",
            *types,
            "```",
        )
    )


def _events(document: JsonObject) -> str:
    definitions = _objects(document["$defs"])
    rows: list[str] = []
    for name, each in sorted(_objects(document["events"]).items()):
        schema = definitions[_name(each)]
        rows.append(f"| `{name}` | {_event_fields(schema)} | {_first_line(schema)} |")
    return "\n".join(
        (
            "Every event has `seq`, `at` and `type`, and where they apply `run`, `turn` and `item`. One that",
            "stands for several gives the first of their numbers as `from`.",
            "",
            "| Event | Fields of its own | Means |",
            "| --- | --- | --- |",
            *rows,
        )
    )


def _errors() -> str:
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in ERROR_MEANINGS.items()]
    return "\n".join(("| Kind | Means |", "| --- | --- |", *rows))


def _event_fields(schema: JsonObject) -> str:
    fields = [field for field in _fields(schema) if not EVERY_EVENT.match(field)]
    return _code(", ".join(fields)) if fields else NOTHING


def _sort(method: JsonObject) -> str:
    return "R" if method["kind"] == "request" else "N"


def _cell(schema: Json, definitions: Definitions, inline: set[str]) -> str:
    if not isinstance(schema, dict):
        return NOTHING
    name = _name(schema)
    if name not in inline:
        return _code(_notation(schema))
    return _code("{" + ", ".join(_fields(definitions[name])) + "}")


def _declaration(name: str, definitions: Definitions) -> str:
    schema = definitions[name]
    comment = _first_line(schema)
    head = f"/** {comment} */\n" if comment else ""
    if "properties" not in schema and schema.get("type") != "object":
        return f"{head}type {name} = {_notation(schema)}"
    fields = "; ".join(_fields(schema))
    return f"{head}interface {name} {{ {fields} }}" if fields else f"{head}interface {name} {{}}"


def _fields(schema: JsonObject) -> Iterator[str]:
    properties = schema.get("properties")
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    for name, each in properties.items():
        mark = "" if name in required else "?"
        yield f"{name}{mark}: {_notation(each) or 'string'}"


def _notation(schema: Json) -> str:
    """Write a schema the way TypeScript would."""
    if not isinstance(schema, dict):
        return "unknown"
    if "$ref" in schema:
        return _name(schema)
    if "const" in schema:
        return json.dumps(schema["const"])
    for key in ("anyOf", "oneOf"):
        members = schema.get(key)
        if isinstance(members, list):
            return " | ".join(dict.fromkeys(each for each in map(_notation, members) if each))
    words = schema.get("enum")
    if isinstance(words, list):
        return " | ".join(json.dumps(word) for word in words)
    return _plain(schema)


def _plain(schema: JsonObject) -> str:
    match schema.get("type"):
        case "array":
            inner = _notation(schema.get("items"))
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object":
            values = schema.get("additionalProperties")
            return f"{{[key]: {_notation(values)}}}" if isinstance(values, dict) else "object"
        case "string":
            # A vendor's word: said once, above the types, and not at every enumeration.
            return "" if schema.get("pattern") == "^_" else "string"
        case "integer" | "number":
            return "number"
        case "boolean" | "null" as name:
            return str(name)
        case _:
            return "JSON"


def _name(schema: Json) -> str:
    ref = schema.get("$ref") if isinstance(schema, dict) else None
    return ref.removeprefix("#/$defs/") if isinstance(ref, str) else ""


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield from filter(None, (_name(value),))
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _references(each)


def _objects(value: Json) -> Definitions:
    if not isinstance(value, dict):
        message = f"the schema must hold an object here, got {value!r}"
        raise TypeError(message)
    return {key: each for key, each in value.items() if isinstance(each, dict)}


def _first_line(schema: JsonObject) -> str:
    return str(schema.get("description", "")).partition("\n")[0]


def _code(notation: str) -> str:
    return "`" + notation.replace("|", "\\|") + "`" if notation else NOTHING
