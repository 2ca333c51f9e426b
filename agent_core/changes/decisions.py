"""Verdicts on hunks, and their encoding in the session file; pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value

HunkAction: TypeAlias = Literal["accept", "reject", "reviewed"]
"""`reviewed`: the user has seen it and keeps it, which has the same effect as `accept`."""
HunkDecider: TypeAlias = Literal["user", "git"]
"""`git`: it was committed."""

ACTIONS: Final[Mapping[str, HunkAction]] = {
    "accept": "accept",
    "reject": "reject",
    "reviewed": "reviewed",
}


class HunkDecision(Value, frozen=True, kw_only=True):
    """A word on some hunks of one file."""

    path: Path
    """Where the file was then."""
    action: HunkAction
    hunks: tuple[str, ...]
    whole: bool = False
    """Also on that the file came, went or moved, and on what is no text."""
    edit: str | None = None
    """The edit that took them back; it follows."""
    by: HunkDecider = "user"
    note: str | None = None
    at_ms: int = 0


def encode_decision(verdict: HunkDecision) -> dict[str, JsonValue]:
    """Write a verdict."""
    fields: dict[str, JsonValue] = {
        "path": str(verdict.path),
        "action": verdict.action,
        "hunks": list(verdict.hunks),
        "by": verdict.by,
        "at": verdict.at_ms,
    }
    if verdict.whole:
        fields["whole"] = True
    if verdict.edit is not None:
        fields["edit"] = verdict.edit
    if verdict.note is not None:
        fields["note"] = verdict.note
    return fields


def decode_decision(data: JsonObject) -> HunkDecision | None:
    """Read a verdict; None: it makes no sense, or a later version wrote it."""
    path, action, hunks = data.get("path"), ACTIONS.get(str(data.get("action"))), data.get("hunks")
    if not isinstance(path, str) or action is None or not isinstance(hunks, list | tuple):
        return None
    edit, note, at_ms = data.get("edit"), data.get("note"), data.get("at")
    return HunkDecision(
        path=Path(path),
        action=action,
        hunks=tuple(one for one in hunks if isinstance(one, str)),
        whole=data.get("whole") is True,
        edit=edit if isinstance(edit, str) else None,
        by="git" if data.get("by") == "git" else "user",
        note=note if isinstance(note, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
    )


class QueuedRejection(Value, frozen=True, kw_only=True):
    """A rejection that waits for the end of a run, and for the next process if this one dies first."""

    id: str
    path: Path
    hunks: tuple[str, ...]
    whole: bool = False
    """The file is meant, with all that waits in it."""
    note: str | None = None
    at_ms: int = 0


def encode_queued(queued: QueuedRejection) -> dict[str, JsonValue]:
    """Write a rejection that waits."""
    fields: dict[str, JsonValue] = {
        "state": "queued",
        "id": queued.id,
        "path": str(queued.path),
        "hunks": list(queued.hunks),
        "at": queued.at_ms,
    }
    if queued.whole:
        fields["whole"] = True
    if queued.note is not None:
        fields["note"] = queued.note
    return fields


def encode_settled(queued: QueuedRejection, status: str) -> dict[str, JsonValue]:
    """Write what became of one."""
    return {"state": "settled", "id": queued.id, "status": status}


def queued_in(entries: Iterable[JsonObject]) -> dict[str, QueuedRejection]:
    """Find the rejections that still wait, by id, in what a session's file says of reviews."""
    found: dict[str, QueuedRejection] = {}
    for data in entries:
        match data.get("state"), data.get("id"):
            case "queued", str(one):
                if (queued := _queued(one, data)) is not None:
                    found[one] = queued
            case "settled", str(one):
                _ = found.pop(one, None)
            case _:
                continue
    return found


def _queued(one: str, data: JsonObject) -> QueuedRejection | None:
    path, hunks = data.get("path"), data.get("hunks")
    if not isinstance(path, str) or not isinstance(hunks, list | tuple):
        return None
    note, at_ms = data.get("note"), data.get("at")
    return QueuedRejection(
        id=one,
        path=Path(path),
        hunks=tuple(hunk for hunk in hunks if isinstance(hunk, str)),
        whole=data.get("whole") is True,
        note=note if isinstance(note, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
    )
