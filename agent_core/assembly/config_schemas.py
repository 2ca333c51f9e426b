"""The JSON Schemas of the files that people write, by which their editors complete and check them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, decode, encode
from agent_core.providers.models_file import ProviderShape
from agent_core.resources.settings_values import settings_schema

FOLDER: Final = Path(__file__).parent / "schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
NAMES: Final = ("settings", "models")


def schemas() -> Mapping[str, JsonObject]:
    """Make them, by the name of the file that each is for, without `.json`."""
    return {"settings": settings_schema(), "models": _models_schema()}


def shipped(name: str) -> str:
    """Give the text of the one that was installed. Blocking."""
    return _file(name).read_text("utf-8")


def stale() -> Mapping[Path, str]:
    """Say which of the files that are shipped are not what they should be, and what they should hold. Blocking."""
    wanted = {_file(name): _text(schema) for name, schema in schemas().items()}
    return {
        path: text
        for path, text in wanted.items()
        if not path.is_file() or path.read_text("utf-8") != text
    }


def _models_schema() -> JsonObject:
    made = as_object(decode(encode(ProviderShape.model_json_schema(by_alias=True))))
    shapes = as_object(made.get("$defs"))
    provider = {key: value for key, value in made.items() if key != "$defs"}
    return {
        "$schema": DIALECT,
        "title": "Tiller models",
        "type": "object",
        "properties": {
            "providers": {
                "type": "object",
                "description": "Providers by their id, new ones and changes to known ones.",
                "additionalProperties": {"$ref": "#/$defs/ProviderShape"},
            }
        },
        "$defs": {**shapes, "ProviderShape": provider},
    }


def _file(name: str) -> Path:
    return FOLDER / f"{name}.schema.json"


def _text(schema: JsonObject) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the files that are not as they should be."""
    for path, text in stale().items():
        _ = path.write_text(text, "utf-8")
        _ = sys.stderr.write(f"{path.name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
