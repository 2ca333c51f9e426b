"""The shapes of RPC records: which keys each kind has, so that two agents can be compared."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
Shapes = Mapping[str, Mapping[str, set[str]]]
"""Types of the values by kind of record and key."""
OPAQUE = frozenset(
    {"details", "args", "arguments", "sections", "toolsAdded", "sourceInfo", "structuredContent"}
)
"""Keys whose value is a tool's or a resource's own."""
TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    type(None): "null",
}


def shapes(records: Iterable[Json]) -> Shapes:
    """Return the keys of all kinds of records, and of the values inside them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        for kind, value in _objects(_record_kind(record), record):
            for key, one in value.items():
                found[kind][key].add(_type(one))
    return found


def _record_kind(record: Json) -> str:
    if record["type"] == "response":
        failed = "" if record["success"] else ", failed"
        return f"response {record.get('command')}{failed}"
    if record["type"] == "extension_ui_request":
        return f"extension_ui_request {record['method']}"
    return f"event {record['type']}"


def _objects(kind: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Return an object with its kind, and those inside it."""
    yield kind, value
    for key, inner in value.items():
        if key in OPAQUE or (kind.startswith("entry custom") and key == "data"):
            continue
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, dict):
                yield from _objects(_kind(one, f"{kind}.{key}"), one)


def _kind(value: Json, where: str) -> str:
    if where.endswith(".assistantMessageEvent"):
        return f"update {value['type']}"
    if value.get("type") in {"text", "thinking", "toolCall"}:
        return f"content {value['type']}"
    marks = {
        "role": f"message {value.get('role')}",
        "totalTokens": "usage",
        "baseUrl": "model",
        "parentId": f"entry {value.get('type')}",
        "children": "tree node",
    }
    return next((kind for mark, kind in marks.items() if mark in value), where)


def _type(value: object) -> str:
    return TYPES.get(type(value), "list" if isinstance(value, list) else "object")


def differences(theirs: Shapes, ours: Shapes) -> Mapping[str, tuple[str, str]]:
    """Return for each kind the keys that one side alone has; a key with another type counts as two keys."""
    found: dict[str, tuple[str, str]] = {}
    for kind in sorted({*theirs, *ours}):
        if kind not in ours or kind not in theirs:
            found[kind] = ("all", "") if kind in theirs else ("", "all")
            continue
        left, right = theirs[kind], ours[kind]
        pair = _only(left, right), _only(right, left)
        if any(pair):
            found[kind] = pair
    return found


def _only(one: Mapping[str, set[str]], other: Mapping[str, set[str]]) -> str:
    """Return what one side alone has. Whether a key that both have can be null depends on what was said before."""
    alone = [
        f"{key}: {kind}"
        for key, kinds in one.items()
        for kind in kinds - other.get(key, set())
        if key not in other or (kind != "null" and other[key] != {"null"})
    ]
    return ", ".join(sorted(alone))
