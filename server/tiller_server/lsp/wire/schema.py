"""Writes what is generated from the vocabulary: `schema.json`, and the tables of PROTOCOL.md.

Run `python -m tiller_server.lsp.wire.schema` after every change to a shape; `--check` only tells whether that is due.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

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
from tiller_server.lsp.wire.events import EVENTS
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
    definitions: dict[str, UncheckedJsonObject] = extra["$defs"]
    models = dict(_models(WireModel))
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
        "events": {name: named[f"event {name}"] for name in EVENTS},
        "frames": {name: named[f"frame {name}"] for name in FRAMES},
        "capabilities": {name: named[f"capability {name}"] for name in _CAPABILITIES},
        "errorData": named["error"],
        "errorKinds": list(ERROR_KINDS),
        "$defs": {
            name: _definition(definitions[name], models.get(name)) for name in sorted(definitions)
        },
    }


def _shapes() -> Iterator[tuple[str, object]]:
    for name, method in METHODS.items():
        yield f"{name} params", method.params
        if method.kind == "request":
            yield f"{name} result", method.result
    for name, shape in EVENTS.items():
        yield f"event {name}", shape.model
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
    for name, text in _field_docs(model).items():
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


def _field_docs(model: type[WireModel]) -> Mapping[str, str]:
    """Return the docstrings of the fields of a model, those of its bases included.

    They are read here and not by pydantic (`use_attribute_docstrings`), which would parse the sources at every start.
    """
    docs: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, WireModel):
            docs.update(_docs_in(inspect.getfile(base)).get(base.__name__, {}))
    return docs


@cache
def _docs_in(file: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields in a source file, by class and field."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = {}
    for shape in tree.body:
        if not isinstance(shape, ast.ClassDef):
            continue
        for field, after in zip(shape.body, shape.body[1:], strict=False):
            match field, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found.setdefault(shape.name, {})[name] = inspect.cleandoc(text)
                case _:
                    pass
    return found


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


def text(document: UncheckedJsonObject) -> str:
    """Write the document as it is shipped."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def stale() -> dict[Path, str]:
    """Return which generated files differ from the vocabulary, and what they should hold."""
    document = build()
    page = PROTOCOL_PAGE.read_text(encoding="utf-8") if PROTOCOL_PAGE.exists() else ""
    wanted = {SCHEMA_FILE: text(document), PROTOCOL_PAGE: fill(page, document)}
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
