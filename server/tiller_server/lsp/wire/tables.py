"""The generated blocks of PROTOCOL.md: tables of methods, events, capabilities and errors, and types as in TypeScript."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.events.codec import NAMES as SENT_EVENTS
from tiller_server.lsp.methods import CLIENT_REQUESTS, METHODS as SERVED, NOTIFICATIONS
from tiller_server.lsp.wire.base import UncheckedJson, UncheckedJsonObject
from tiller_server.lsp.wire.errors import ERROR_MEANINGS

__all__ = ["METHOD_BLOCK", "fill"]

METHOD_BLOCK: Final = "method "
"""Begin of the name of a block that describes one method."""
BUILT: Final = frozenset({*SERVED, *NOTIFICATIONS, *CLIENT_REQUESTS})
"""Methods that this release answers or sends; at run time `methods[]` of the server's capability names those it answers."""
EVENT_GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Session events": ("session.", "model.", "leaf.", "entry.", "queue."),
    "Run and turn events": ("run.", "turn.", "plan.", "task."),
    "Message and thought events": ("message.", "thought."),
    "Tool and command events": ("tool.", "bash.", "background."),
    "Edit and checkpoint events": ("edit.", "changes.", "checkpoint."),
    "Permission and question events": ("permission.", "question."),
    "Compaction and retry events": ("compaction.", "retry."),
    "Notice and error events": ("notice", "error", "extension.error"),
    "Extension view events": ("ui.",),
}
"""Headings of the tables of events, and how the names of their events begin."""
EVERY_EVENT: Final = frozenset({"seq", "at", "type", "run", "turn", "item"})
CLIENT_CAPABILITIES: Final = "AgentClientCaps"
"""Has a table of its own, also where it stands among the options."""
LINE_CHARS: Final = 100
"""A type that fits is written in one line."""

NOTHING: Final = "none"
ANY_JSON: Final = "null | boolean | number | string | JsonValue[] | {[key: string]: JsonValue}"
FIELD_HEAD = ("| Field | Type | Required | Description |", "| --- | --- | --- | --- |")

Definitions = Mapping[str, UncheckedJsonObject]


def fill(page: str, document: UncheckedJsonObject) -> str:
    """Write the generated blocks between their markers; an empty page gets the markers and nothing else.

    Raises:
        ValueError: A pair of markers is missing, or stands for a method that does not exist.
    """
    made = _blocks(document)
    if not page:
        page = "\n\n".join(f"{_begin(name)}\n{_end(name)}" for name in made) + "\n"
    for name, block in made.items():
        pattern = re.compile(f"({re.escape(_begin(name))}).*?({re.escape(_end(name))})", re.DOTALL)
        inside = f"\n\n{block}\n\n"
        page, count = pattern.subn(lambda found, inside=inside: found[1] + inside + found[2], page)
        if count != 1:
            message = f"PROTOCOL.md must have {_begin(name)!r} and its end once, found {count}"
            raise ValueError(message)
    for name in re.findall(r"<!-- (.+):begin -->", page):
        if name.startswith(METHOD_BLOCK) and name not in made:
            message = f"PROTOCOL.md has {_begin(name)!r}, and there is no such method"
            raise ValueError(message)
    return page


def _begin(name: str) -> str:
    return f"<!-- {name}:begin -->"


def _end(name: str) -> str:
    return f"<!-- {name}:end -->"


def _blocks(document: UncheckedJsonObject) -> Mapping[str, str]:
    definitions = _objects(document["$defs"])
    methods = _objects(document["methods"])
    capabilities = _objects(document["capabilities"])
    return {
        "initialization options": _tree(capabilities["initializationOptions"], definitions),
        "client capabilities": _tree(capabilities["client"], definitions),
        "server capabilities": _tree(capabilities["server"], definitions),
        "errors": _errors(),
        "methods": _index(methods, definitions),
        **{
            f"{METHOD_BLOCK}{name}": _method(name, method, definitions)
            for name, method in methods.items()
        },
        "frames": _frames(document, definitions),
        "events": _events(document, definitions),
        "types": _types(document, definitions),
    }


def _index(methods: Definitions, definitions: Definitions) -> str:
    lines: list[str] = []
    for direction, title in (
        ("client→server", "Client → server:"),
        ("server→client", "Server → client, only to clients that declare it:"),
    ):
        lines += ["", title, "", "| Method | Kind | Purpose |", "| --- | --- | --- |"]
        for name, method in methods.items():
            if method["direction"] == direction:
                purpose = _first_line(definitions[_name(method["params"])])
                reserved = "" if name in BUILT else " Reserved."
                lines.append(
                    f"| [`{name}`](#{_anchor(name)}) | {method['kind']} | {purpose}{reserved} |"
                )
    return "\n".join(lines[1:])


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower())


def _method(name: str, method: UncheckedJsonObject, definitions: Definitions) -> str:
    to_server = method["direction"] == "client→server"
    direction = "Client → server" if to_server else "Server → client"
    params = _name(method["params"])
    lines = [f"{direction}, {method['kind']}. {_first_line(definitions[params])}"]
    if name not in BUILT:
        verb = "serve" if to_server else "send"
        lines += ["", f"Reserved: this release does not {verb} it."]
    lines += ["", *_shape("Params", method["params"], definitions)]
    if method["kind"] == "request":
        lines += ["", *_shape("Result", method["result"], definitions)]
    return "\n".join(lines)


def _shape(title: str, schema: UncheckedJson, definitions: Definitions) -> Iterator[str]:
    """Describe params or a result: each object in a table of its own, anything else by its type."""
    names = [name for name in map(_name, _members(schema)) if name]
    tables = [name for name in names if definitions[name].get("properties")]
    if not tables:
        is_empty = bool(names) and definitions[names[0]].get("type") == "object"
        yield f"{title}: an empty object." if is_empty else f"{title}: any JSON value."
        return
    notation = " | ".join(filter(None, map(_notation, _members(schema))))
    yield f"{title}:" if _is_own(notation) else f"{title}, `{notation}`:"
    for name in tables:
        if len(tables) > 1:
            yield from ("", f"`{name}`:")
        yield from ("", *_field_table(definitions[name]))


def _is_own(name: str) -> bool:
    """Whether a type is named after its method, so that its name tells nothing more."""
    return name != "RunResult" and re.fullmatch(r"\w+(Params|Result)", name) is not None


def _members(schema: UncheckedJson) -> Sequence[UncheckedJson]:
    members = schema.get("anyOf") if isinstance(schema, dict) else None
    return members if isinstance(members, list) else [schema]


def _field_table(schema: UncheckedJsonObject) -> Iterator[str]:
    yield from FIELD_HEAD
    for name, each, required in _properties(schema):
        needed = "yes" if required else "no"
        yield f"| `{name}` | {_code(_type(each))} | {needed} | {_first_line(each)} |"


def _tree(schema: UncheckedJsonObject, definitions: Definitions) -> str:
    return "\n".join((*FIELD_HEAD, *_nested(definitions[_name(schema)], definitions, "")))


def _nested(schema: UncheckedJsonObject, definitions: Definitions, above: str) -> Iterator[str]:
    """Return the rows of a shape with the fields of the objects in it, by their path."""
    for name, each, required in _properties(schema):
        kind = _name(each)
        inner = definitions.get(kind, {}) if kind != CLIENT_CAPABILITIES else {}
        fields = inner.get("properties")
        needed = "yes" if required else "no"
        shown = "object" if fields else "{}" if kind == "Marker" else _type(each)
        yield f"| `{above}{name}` | {_code(shown)} | {needed} | {_first_line(each)} |"
        if fields:
            yield from _nested(inner, definitions, f"{above}{name}.")


def _frames(document: UncheckedJsonObject, definitions: Definitions) -> str:
    lines: list[str] = []
    for name, each in _objects(document["frames"]).items():
        schema = definitions[_name(each)]
        lines += ["", f"`{name}`: {_first_line(schema)}", "", *_field_table(schema)]
    return "\n".join(lines[1:])


def _events(document: UncheckedJsonObject, definitions: Definitions) -> str:
    events = _objects(document["events"])
    left = set(events)
    lines: list[str] = []
    for title, beginnings in EVENT_GROUPS.items():
        members = [name for name in sorted(left) if name.startswith(tuple(beginnings))]
        left.difference_update(members)
        lines += ["", f"### {title}", ""]
        lines += ["| Event | Fields of its own | Meaning |", "| --- | --- | --- |"]
        lines += [_event(name, definitions[_name(events[name])]) for name in members]
    if left:
        message = f"name the group of the events {', '.join(sorted(left))} in EVENT_GROUPS"
        raise ValueError(message)
    return "\n".join(lines[1:])


def _event(name: str, schema: UncheckedJsonObject) -> str:
    own = [one for one in _properties(schema) if one[0] not in EVERY_EVENT and not _is_range(one)]
    fields = ", ".join(_field(*one) for one in own)
    notes = [f"`{key}`: {text}" for key, each, _ in own if (text := _first_line(each))]
    reserved = () if name in SENT_EVENTS.values() else ("Reserved: this release does not send it.",)
    return f"| `{name}` | {_code(fields)} | {' '.join((_first_line(schema), *notes, *reserved))} |"


def _is_range(field: tuple[str, UncheckedJsonObject, bool]) -> bool:
    """Whether it is the `from` of an event that stands for several."""
    name, schema, _ = field
    return name == "from" and schema.get("type") == "integer"


def _errors() -> str:
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in ERROR_MEANINGS.items()]
    return "\n".join(("| Kind | Meaning |", "| --- | --- |", *rows))


def _types(document: UncheckedJsonObject, definitions: Definitions) -> str:
    """Declare every type that is not an event and not the params or result of one method alone."""
    once = {name for name, count in Counter(_references(document)).items() if count == 1}
    own = {name for name in once if name.endswith(("Params", "Result"))}
    events = {_name(each) for each in _objects(document["events"]).values()}
    declared = [name for name in definitions if name not in own | events]
    return "\n".join(
        ("```ts", *(_declaration(name, definitions[name]) for name in declared), "```")
    )


def _declaration(name: str, schema: UncheckedJsonObject) -> str:
    comment = _first_line(schema)
    head = f"/** {comment} */\n" if comment else ""
    if "properties" not in schema and schema.get("type") != "object":
        return f"{head}type {name} = {_notation(schema)}"
    fields = [(_field(*one), _first_line(one[1])) for one in _properties(schema)]
    line = f"interface {name} {{ {'; '.join(field for field, _ in fields)} }}"
    if not fields:
        return f"{head}interface {name} {{}}"
    if len(line) <= LINE_CHARS and not any(text for _, text in fields):
        return head + line
    inner = "".join(f"  {field};{f' // {text}' if text else ''}\n" for field, text in fields)
    return f"{head}interface {name} {{\n{inner}}}"


def _field(name: str, schema: UncheckedJsonObject, required: bool) -> str:  # noqa: FBT001 - a row of `_properties`
    return f"{name}{'' if required else '?'}: {_type(schema)}"


def _properties(schema: UncheckedJsonObject) -> Iterator[tuple[str, UncheckedJsonObject, bool]]:
    """Return name, schema and whether it is required, of each field."""
    properties = schema.get("properties")
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    for name, each in properties.items():
        if isinstance(each, dict):
            yield name, each, name in required


def _type(schema: UncheckedJsonObject) -> str:
    return _notation(schema) or "string"


def _notation(schema: UncheckedJson) -> str:
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
    constants = schema.get("enum")
    if isinstance(constants, list):
        return " | ".join(json.dumps(word) for word in constants)
    return _plain(schema)


def _plain(schema: UncheckedJsonObject) -> str:
    match schema.get("type"):
        case "array":
            inner = _notation(schema.get("items"))
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object":
            values = schema.get("additionalProperties")
            return (
                f"{{[key: string]: {_notation(values)}}}" if isinstance(values, dict) else "object"
            )
        case "string":
            # A word of a vendor: the page says once that it may stand, not at every enumeration.
            return "" if schema.get("pattern") == "^_" else "string"
        case "integer" | "number" | "boolean" | "null" as name:
            return str(name)
        case _:
            return ANY_JSON


def _name(schema: UncheckedJson) -> str:
    ref = schema.get("$ref") if isinstance(schema, dict) else None
    return ref.removeprefix("#/$defs/") if isinstance(ref, str) else ""


def _references(value: UncheckedJson) -> Iterator[str]:
    if isinstance(value, dict):
        yield from filter(None, (_name(value),))
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _references(each)


def _objects(value: UncheckedJson) -> Definitions:
    if not isinstance(value, dict):
        message = f"the schema must hold an object here, got {value!r}"
        raise TypeError(message)
    return {key: each for key, each in value.items() if isinstance(each, dict)}


def _first_line(schema: UncheckedJsonObject) -> str:
    return str(schema.get("description", "")).partition("\n")[0].replace("|", "\\|")


def _code(notation: str) -> str:
    return "`" + notation.replace("|", "\\|") + "`" if notation else NOTHING
