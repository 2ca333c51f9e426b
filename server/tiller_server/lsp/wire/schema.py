"""Writes what is generated from the vocabulary: `schema.json`, `events.json` and the tables of PROTOCOL.md.

Run `python -m tiller_server.lsp.wire.schema` after every change to a shape; `--check` only tells whether that is due.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from agent_core.events.codec import NAMES as SENT_EVENTS
from tiller_server.lsp.methods import EVENTS_FILE
from tiller_server.lsp.wire.base import (
    CLEARABLE,
    UncheckedJson,
    UncheckedJsonObject,
    WireModel,
    wire_name,
)
from tiller_server.lsp.wire.capabilities import (
    PROTOCOL_VERSION,
    AgentClientCaps,
    AgentOptions,
    AgentServerCaps,
)
from tiller_server.lsp.wire.errors import ERROR_KINDS, ErrorData
from tiller_server.lsp.wire.events import DEFINITIONS, EVENTS, event_definitions
from tiller_server.lsp.wire.field_docs import field_docs
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.subscription import FRAMES
from tiller_server.lsp.wire.tables import fill

__all__ = ["PROTOCOL_PAGE", "SCHEMA_FILE", "build", "main", "stale", "text"]

SCHEMA_FILE = Path(__file__).with_name("schema.json")
PROTOCOL_PAGE = Path(__file__).parents[3] / "PROTOCOL.md"

_CAPABILITIES: Mapping[str, type[WireModel]] = {
    "client": AgentClientCaps,
    "server": AgentServerCaps,
    "initializationOptions": AgentOptions,
}


def build() -> UncheckedJsonObject:
    """Describe the whole vocabulary as one JSON Schema document.

    An optional member is described without null, because senders leave it out; receivers treat null as
    absent.
    """
    shapes = {
        key: TypeAdapter[object](shape)  # pyright: ignore[reportArgumentType] - a shape or a union of shapes
        for key, shape in _shapes()
    }
    refs, extra = TypeAdapter.json_schemas(
        [(key, "validation", adapter) for key, adapter in shapes.items()], by_alias=True
    )
    named = {key[0]: _tidy(ref) for key, ref in refs.items()}
    shared: dict[str, UncheckedJsonObject] = extra["$defs"]
    models = dict(_models(WireModel))
    definitions = {
        **{name: _definition(each, models.get(name)) for name, each in shared.items()},
        **event_definitions(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The agent protocol of Tiller",
        "version": PROTOCOL_VERSION,
        "methods": {
            name: {
                "kind": method.kind,
                "direction": method.direction,
                "params": named[f"{name} params"],
                **({"result": named[f"{name} result"]} if method.kind == "request" else {}),
            }
            for name, method in METHODS.items()
        },
        "events": {name: {"$ref": f"#/$defs/{each}"} for name, each in EVENTS.items()},
        "frames": {name: named[f"frame {name}"] for name in FRAMES},
        "capabilities": {name: named[f"capability {name}"] for name in _CAPABILITIES},
        "errorData": named["error"],
        "errorKinds": list(ERROR_KINDS),
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _shapes() -> Iterator[tuple[str, object]]:
    for name, method in METHODS.items():
        yield f"{name} params", method.params
        if method.kind == "request":
            yield f"{name} result", method.result
    for number, kind in enumerate(DEFINITIONS.values()):
        yield f"in events {number}", kind
    for name, frame in FRAMES.items():
        yield f"frame {name}", frame
    for name, capability in _CAPABILITIES.items():
        yield f"capability {name}", capability
    yield "error", ErrorData


def _models(root: type[WireModel]) -> Iterator[tuple[str, type[WireModel]]]:
    for model in root.__subclasses__():
        yield model.__name__, model
        yield from _models(model)


def _definition(schema: UncheckedJsonObject, model: type[WireModel] | None) -> UncheckedJsonObject:
    """Describe a shape as senders write it: a field is left out instead of null, and the type is always named."""
    tidy = _tidy(schema)
    properties = tidy.get("properties")
    if model is None or not isinstance(properties, dict):
        return tidy
    for name, field in model.model_fields.items():
        given = properties[wire_name(name)]
        if isinstance(given, dict) and not field.is_required():
            properties[wire_name(name)] = _without_default(
                given, nullable=CLEARABLE in field.metadata
            )
    for name, text in field_docs(model).items():
        described = properties[wire_name(name)]
        if isinstance(described, dict):
            properties[wire_name(name)] = {**described, "description": text}
    constant = [
        name for name, each in properties.items() if isinstance(each, dict) and "const" in each
    ]
    required = tidy.get("required", [])
    if constant and isinstance(required, list):
        tidy["required"] = [*constant, *(name for name in required if name not in constant)]
    return tidy


def _without_default(schema: UncheckedJsonObject, *, nullable: bool) -> UncheckedJsonObject:
    plain = {key: value for key, value in schema.items() if key != "default" or value is not None}
    if "const" in plain:
        plain.pop("default", None)
    members = plain.get("anyOf")
    if nullable or not isinstance(members, list):
        return plain
    kept = [member for member in members if member != {"type": "null"}]
    rest = {key: value for key, value in plain.items() if key != "anyOf"}
    if len(kept) == 1 and isinstance(kept[0], dict):
        return {**rest, **kept[0]}
    return {**rest, "anyOf": kept}


def _tidy(schema: UncheckedJsonObject) -> UncheckedJsonObject:
    """Drop the titles that only repeat the names."""
    tidy: UncheckedJsonObject = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            # Below it the keys are names of fields, and a field may be called title.
            tidy[key] = {name: _inside(each) for name, each in value.items()}
        elif key != "title":
            tidy[key] = _inside(value)
    return tidy


def _inside(value: UncheckedJson) -> UncheckedJson:
    if isinstance(value, dict):
        return _tidy(value)
    if isinstance(value, list):
        return [_inside(each) for each in value]
    return value


def text(document: UncheckedJson) -> str:
    """Write the document as it is shipped."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def stale() -> dict[Path, str]:
    """Return which generated files differ from the vocabulary, and what they should hold."""
    document = build()
    page = PROTOCOL_PAGE.read_text(encoding="utf-8") if PROTOCOL_PAGE.exists() else ""
    wanted = {
        SCHEMA_FILE: text(document),
        EVENTS_FILE: text([*SENT_EVENTS.values()]),
        PROTOCOL_PAGE: fill(page, document),
    }
    return {
        path: content
        for path, content in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    }


def main(arguments: list[str]) -> int:
    """Bring the generated files up to date, or with `--check` exit 1 when they are not."""
    due = stale()
    only_check = "--check" in arguments
    for path, content in due.items():
        if not only_check:
            path.write_text(content, encoding="utf-8")
        sys.stderr.write(f"{path.name} {'is stale' if only_check else 'written'}\n")
    return 1 if due and only_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
