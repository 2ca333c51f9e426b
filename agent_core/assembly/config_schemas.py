"""The JSON Schemas of the files that people write, by which their editors complete and check them."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, decode, encode, is_object
from agent_core.kernel.unknown_keys import NOTES
from agent_core.mcp.definitions import (
    COMMON_KEYS,
    HTTP_KEYS,
    HTTP_TYPES,
    LONGEST_S,
    MOST_SERVERS,
    NAME,
    STDIO_KEYS,
    WORD_OF_NEED,
)
from agent_core.providers.catalog.models_file import ProviderShape
from agent_core.resources.settings.values import settings_schema
from agent_core.workspace.permissions.policy.rules.entries import (
    KEYS as RULE_KEYS,
    MOST_CHARS,
    MOST_TEXTS,
    NOTES as RULE_NOTES,
)
from agent_core.workspace.permissions.policy.rules.rule import RuleVerdict
from agent_core.workspace.permissions.policy.rules.rules_file import MOST_RULES, OUTERMOST, VERSION

FOLDER: Final = Path(__file__).parent / "schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
NOTE_PATTERN: Final = "|".join(f"^{re.escape(one)}" for one in NOTES)
NAMES: Final = ("settings", "models", "mcp", "policy")

TEXT: Final[JsonObject] = {"type": "string", "minLength": 1}
TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "string"}}
SECONDS: Final[JsonObject] = {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_S}
SERVER: Final[Mapping[str, JsonObject]] = {
    "command": {**TEXT, "description": "The program to start; `${NAME}` stands for a variable."},
    "args": {
        "type": "array",
        "items": {"type": "string"},
        "description": "The arguments of the program.",
    },
    "env": {**TEXTS, "description": "Variables of the program, besides those of every command."},
    "cwd": {**TEXT, "description": "The folder to start in, relative to the workspace."},
    "needs": {
        "type": "array",
        "items": {"enum": sorted(WORD_OF_NEED)},
        "description": "What the sandbox lets through for the program.",
    },
    "sandbox": {
        "enum": ["auto", "off"],
        "default": "auto",
        "description": "`off` starts the program outside the sandbox; only in your own mcp.json.",
    },
    "url": {
        "type": "string",
        "pattern": "^(https?://|\\$\\{)",
        "description": "The address of a server that is running.",
    },
    "headers": {**TEXTS, "description": "HTTP headers of every request."},
    "disabled": {"type": "boolean", "description": "True switches the server off."},
    "enabled": {"type": "boolean", "description": "False switches the server off."},
    "timeoutS": {**SECONDS, "description": "The time limit of a call, in seconds."},
    "startTimeoutS": {**SECONDS, "description": "The time limit of the start, in seconds."},
}
RULE_TEXT: Final[JsonObject] = {**TEXT, "maxLength": MOST_CHARS}
EXAMPLES: Final[JsonObject] = {
    "type": "array",
    "maxItems": MOST_TEXTS,
    "items": {"type": "string", "maxLength": MOST_CHARS},
}
RULE: Final[Mapping[str, JsonObject]] = {
    "id": {**RULE_TEXT, "description": "The name of the rule in messages."},
    "tool": {
        **RULE_TEXT,
        "description": "The tool: bash, read, edit, delete, …; `*` is every tool.",
    },
    "verdict": {
        "enum": list(get_args(RuleVerdict)),
        "description": "What happens; a project's own file can only ask and deny.",
    },
    "argvPrefix": {**EXAMPLES, "minItems": 1, "description": "How a command begins, word by word."},
    "path": {**RULE_TEXT, "description": "A glob, relative to the workspace; `~/` is your home."},
    "host": {**RULE_TEXT, "description": "A host, `*.` and a domain, or `*`."},
    "mcp": {**RULE_TEXT, "description": "`server/tool` or `server/*` of an MCP server."},
    "program": {**RULE_TEXT, "description": "The absolute path of the program that is meant."},
    "match": {**EXAMPLES, "description": "Commands or paths that the rule must cover."},
    "notMatch": {**EXAMPLES, "description": "Commands or paths that the rule must not cover."},
}


def schemas() -> Mapping[str, JsonObject]:
    """Make them, by the name of the file that each is for, without `.json`."""
    made = {
        "settings": settings_schema(),
        "models": _models_schema(),
        "mcp": _mcp_schema(),
        "policy": _policy_schema(),
    }
    return {name: _closed(schema) for name, schema in made.items()}


def shipped(name: str) -> str:
    """Return the text of the one that was installed. Blocking."""
    return _file(name).read_text("utf-8")


def stale() -> Mapping[Path, str]:
    """Return which of the files that are shipped are not what they should be, and what they should hold. Blocking."""
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


def _mcp_schema() -> JsonObject:
    stdio = _server(STDIO_KEYS, types=["stdio"], required="command")
    http = _server(HTTP_KEYS, types=sorted(HTTP_TYPES), required="url")
    return {
        "$schema": DIALECT,
        "title": "Tiller MCP servers",
        "type": "object",
        "properties": {
            "mcpServers": {
                "type": "object",
                "description": "Servers of the Model Context Protocol by name.",
                "maxProperties": MOST_SERVERS,
                "propertyNames": {"pattern": f"^(?!.*__){NAME.pattern}$"},
                "additionalProperties": {
                    "type": "object",
                    "if": {"required": ["url"]},
                    "then": {"$ref": "#/$defs/Http"},
                    "else": {"$ref": "#/$defs/Stdio"},
                },
            }
        },
        "$defs": {"Stdio": stdio, "Http": http},
    }


def _server(keys: Iterable[str], *, types: Sequence[str], required: str) -> JsonObject:
    shapes: Mapping[str, JsonObject] = {**SERVER, "type": {"enum": list(types)}}
    return {
        "type": "object",
        "properties": {key: shapes[key] for key in sorted({*keys, *COMMON_KEYS})},
        "required": [required],
    }


def _policy_schema() -> JsonObject:
    rule: JsonObject = {
        "type": "object",
        "properties": {
            **{key: RULE[key] for key in sorted(RULE_KEYS)},
            **{key: {"description": "For people."} for key in sorted(RULE_NOTES)},
        },
        "required": ["tool", "verdict"],
    }
    properties: Mapping[str, JsonObject] = {
        "version": {"const": VERSION, "description": "The version of the file."},
        "rules": {"type": "array", "maxItems": MOST_RULES, "items": {"$ref": "#/$defs/Rule"}},
    }
    return {
        "$schema": DIALECT,
        "title": "Tiller permission rules",
        "type": "object",
        "properties": {
            key: properties.get(key, {"description": "For people."}) for key in OUTERMOST
        },
        "$defs": {"Rule": rule},
    }


def _closed(schema: JsonObject) -> JsonObject:
    """Return a schema in which every object knows its keys, so that editors mark all others but notes."""
    made: JsonObject = {key: _closed(one) if is_object(one) else one for key, one in schema.items()}
    if is_object(made.get("properties")) and made.get("type") == "object":
        made["additionalProperties"] = False
        made["patternProperties"] = {NOTE_PATTERN: {}}
    return made


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
