"""Holds events against the schema that is shipped, more strictly than clients should."""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import best_match

from tiller_server.lsp.wire.schema import SCHEMA_FILE

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def _is_integer(_: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: object, value: object) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


Validator = validators.extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_integer, "number": _is_number}
    ),
)


def check_event(event: Mapping[str, Any]) -> None:
    """Check that an event is one that a server may send: its type is known, every field is there, typed and known.

    An optional field may be null, which receivers treat as absent.

    Raises:
        ValueError: One sentence about the first misfit.
    """
    kind = event.get("type")
    if kind not in SCHEMA["events"]:
        message = f"event: type must be a known type of event, got {kind!r}"
        raise ValueError(message)
    name = SCHEMA["events"][kind]["$ref"].removeprefix("#/$defs/")
    required = SCHEMA["$defs"][name]["required"]
    sent = {key: value for key, value in event.items() if value is not None or key in required}
    error = best_match(_validator(name).iter_errors(sent))
    if error is not None:
        place = "".join(f"{step}: " for step in (".".join(map(str, error.absolute_path)),) if step)
        message = f"{kind}: {place}{error.message}"
        raise ValueError(message)


@cache
def _validator(definition: str) -> Any:
    return Validator({"$ref": f"#/$defs/{definition}", "$defs": _strict_definitions()})


@cache
def _strict_definitions() -> dict[str, Any]:
    """Return the definitions without room for unknown fields, and an image with one source."""
    strict = {
        name: {"additionalProperties": False, **each} if "properties" in each else each
        for name, each in SCHEMA["$defs"].items()
    }
    sources = {"oneOf": [{"required": ["data"]}, {"required": ["uri"]}]}
    return {**strict, "ImageBlock": {**strict["ImageBlock"], **sources}}
