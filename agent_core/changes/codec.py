"""Changes as JSON, as the session's file holds them; pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.changes.values import Change, ChangeSource, FileVersion, Op
from agent_core.kernel import JsonObject, JsonValue, RunId, ToolCallId
from agent_core.kernel.json import as_object

_OPS: Final[Mapping[str, Op]] = {
    "add": "add",
    "modify": "modify",
    "delete": "delete",
    "move": "move",
}
_DOERS: Final[Mapping[str, ChangeSource]] = {
    "tool": "tool",
    "process": "process",
    "restore": "restore",
    "reject": "reject",
}


def encode_change(change: Change) -> dict[str, JsonValue]:
    """Encode a change as JSON; fields that are None or False are left out."""
    fields: dict[str, JsonValue] = {
        "edit": change.id,
        "run": change.run,
        "call": change.call,
        "by": change.by,
        "op": change.op,
        "path": str(change.path),
        "source": None if change.source is None else str(change.source),
        "before": None if change.before is None else _version(change.before),
        "after": None if change.after is None else _version(change.after),
        "at": change.at_ms,
        "doubtful": change.maybe_user_edit or None,
        "ignored": change.ignored or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_change(data: JsonObject) -> Change | None:
    """Read a change; None: it makes no sense, or a later version wrote it."""
    edit, path = data.get("edit"), data.get("path")
    op, by = _OPS.get(str(data.get("op"))), _DOERS.get(str(data.get("by")))
    if not isinstance(edit, str) or not isinstance(path, str) or op is None or by is None:
        return None
    run, call, source, at_ms = (data.get(name) for name in ("run", "call", "source", "at"))
    return Change(
        id=edit,
        run=RunId(run) if isinstance(run, str) else None,
        call=ToolCallId(call) if isinstance(call, str) else None,
        by=by,
        op=op,
        path=Path(path),
        source=Path(source) if isinstance(source, str) else None,
        before=_read_version(data.get("before")),
        after=_read_version(data.get("after")),
        at_ms=at_ms if isinstance(at_ms, int) else 0,
        maybe_user_edit=data.get("doubtful") is True,
        ignored=data.get("ignored") is True,
    )


def _version(one: FileVersion) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {"sha256": one.sha256, "size": one.size}
    if one.content is not None:
        fields["content"] = one.content
    if not one.is_text:
        fields["text"] = False
    if one.encoding != "utf-8":
        fields["encoding"] = one.encoding
    if one.bom:
        fields["bom"] = True
    if not one.saved:
        fields["saved"] = False
    return fields


def _read_version(value: JsonValue) -> FileVersion | None:
    data = as_object(value)
    sha256, content, size = data.get("sha256"), data.get("content"), data.get("size")
    encoding = data.get("encoding")
    if not isinstance(sha256, str):
        return None
    return FileVersion(
        sha256=sha256,
        content=content if isinstance(content, str) else None,
        size=size if isinstance(size, int) else 0,
        is_text=data.get("text") is not False,
        encoding=encoding if isinstance(encoding, str) else "utf-8",
        bom=data.get("bom") is True,
        saved=data.get("saved") is not False,
    )
