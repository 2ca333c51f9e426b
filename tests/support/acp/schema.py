"""The vendor's JSON Schemas as the judge of messages; read from its npm package, which `make` installs."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match

from tests.support.harness.shared import ROOT

Json = dict[str, Any]
ACP_SDK = ROOT / ".venv" / "acp" / "node_modules" / "@agentclientprotocol" / "sdk"
MISSING = (
    f"the ACP schemas are not installed in {ACP_SDK.parent.parent.parent}: run `make acp-setup`"
)
FREE = frozenset(
    {
        "text",
        "title",
        "toolCallId",
        "messageId",
        "sessionId",
        "requestId",
        "data",
        "path",
        "message",
    }
)
"""Fields whose value is any text: two messages that differ in them alone are equally valid."""


def schema_path(version: int = 1) -> Path:
    return ACP_SDK / "schema" / f"v{version}" / "schema.json"


class Judge:
    """Checks all messages of a record against the definitions of their methods."""

    def __init__(self, version: int = 1) -> None:
        self._schema = json.loads(schema_path(version).read_text("utf-8"))
        self._judged: set[str] = set()
        self.checked = 0
        self.names: dict[tuple[str, str], str] = {}
        for name, definition in self._schema["$defs"].items():
            if "x-method" in definition:
                kind = next(
                    one for one in ("Request", "Response", "Notification") if name.endswith(one)
                )
                self.names[definition["x-method"], kind] = name

    def problems(self, record: list[tuple[str, Json]]) -> Iterator[str]:
        """Yield a sentence for each message that is not as its schema says, and each request without one answer."""
        asked: dict[tuple[str, Any], str] = {}
        for way, message in record:
            if "method" in message:
                kind = "Request" if "id" in message else "Notification"
                if "id" in message:
                    asked[way, message["id"]] = message["method"]
                yield from self._check(message["method"], kind, message.get("params", {}))
            else:
                other = "<" if way == ">" else ">"
                method = asked.pop((other, message["id"]), None)
                if method is None:
                    if message["id"] is not None:
                        yield f"{way} answers nothing: {message}"
                elif "result" in message:
                    yield from self._check(method, "Response", message["result"])
                else:
                    yield from self._valid("Error", message["error"])
        yield from (f"{way} {method} was not answered" for (way, _), method in asked.items())

    def _check(self, method: str, kind: str, value: Json) -> Iterator[str]:
        name = self.names.get((method, kind))
        if name is not None:
            yield from self._valid(name, value)
        elif not method.startswith("_"):
            yield f"there is no {kind} {method}"

    def _valid(self, name: str, value: Json) -> Iterator[str]:
        self.checked += 1
        key = f"{name} {json.dumps(_shape(value))}"
        if key in self._judged:
            return
        error = best_match(self._validator(name).iter_errors(value))
        if error is not None:
            yield f"{name}: {error.message} in {json.dumps(value)[:600]}"
        else:
            self._judged.add(key)

    @cache  # noqa: B019 - one judge lives as long as its test
    def _validator(self, name: str) -> Any:
        return jsonschema.Draft202012Validator(
            {"$ref": f"#/$defs/{name}", "$defs": self._schema["$defs"]}
        )


def _shape(value: Any) -> Any:
    """Return a value without what no schema looks at."""
    match value:
        case dict():
            return {
                name: "" if name in FREE and isinstance(one, str) else _shape(one)
                for name, one in value.items()
                if name != "_meta"
            }
        case list():
            return [_shape(one) for one in value]
        case _:
            return value
