"""Snapshots, results and events of the core in the form of the wire."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_core.events import (
    Attendant,
    ChangeCounts,
    EventEnvelope,
    FolderTrust,
    PermissionRequest,
    Question,
    RunResult,
    SessionConfig,
    ToolStarted,
    WorkspaceRoot,
)
from agent_core.events.codec import NAMES, block, cost, encode, permission, queue_item, usage, value
from agent_core.kernel import JsonValue, rfc3339
from agent_core.kernel.json import as_object
from agent_core.messages import Text
from agent_core.session import Activities, ItemView, SessionSnapshot

EDIT = "edit."
REQUESTED = "permission.requested"
TRUST = "session.trust"
ROOTS = "session.roots"


def event(stamped: EventEnvelope) -> dict[str, JsonValue]:
    """Return an event with URIs in the place of paths."""
    out = encode(stamped)
    kind = out["type"]
    if isinstance(kind, str) and kind.startswith(EDIT):
        out["documents"] = [_with_uri(one) for one in _list(out.get("documents"))]
    if kind == TRUST:
        out["items"] = [
            _with_uri(one, key="folder", uri="folder") for one in _list(out.get("items"))
        ]
    if kind == ROOTS:
        out["roots"] = [_with_uri(one, key="folder") for one in _list(out.get("roots"))]
    if kind == REQUESTED:
        out["request"] = _request(out.get("request"))
    return out


def config(one: SessionConfig) -> JsonValue:
    """Return what is in force."""
    return value(one)


def snapshot(
    one: SessionSnapshot,
    *,
    epoch: str,
    roots: Sequence[WorkspaceRoot],
    clients: Sequence[Attendant],
    cursor: str | None,
) -> dict[str, JsonValue]:
    """Return the picture that a client starts from; `cursor` is where its past is read from."""
    out: dict[str, JsonValue] = {
        "session": one.session,
        "epoch": epoch,
        "seq": one.seq,
        "state": one.state,
        "queue": [queue_item(item) for item in one.queue],
        "pending": [request(one) for one in one.pending],
        "sandbox": one.sandbox,
        "config": config(one.config),
        "usage": usage(one.usage),
        "roots": [_with_uri(value(root), key="folder") for root in roots],
        "trust": [{"folder": one.folder.as_uri(), "trusted": one.trusted} for one in roots],
        "changes": counts(one.changes),
        "checkpoints": {"count": len(one.checkpoints)},
        "clients": [value(one) for one in clients],
        "history": {"cursor": cursor},
    }
    if one.activity != Activities():
        out["activity"] = _activity(one.activity)
    if one.checkpoints:
        out["checkpoints"] = {"count": len(one.checkpoints), "latest": one.checkpoints[-1]}
    if one.background:
        out["background"] = [value(command) for command in one.background]
    if one.tasks:
        out["tasks"] = [value(task) for task in one.tasks]
    if one.paused:
        out["paused"] = True
    if one.views:
        out["views"] = [
            {"type": NAMES[type(view)], "extension": view.extension, "view": view.view}
            for view in one.views
        ]
    if one.title is not None:
        out["title"] = one.title
    if one.run is not None:
        out["run"] = {
            "id": one.run.run,
            "startedAt": rfc3339(one.run.started_ms),
            "items": [item(view) for view in one.run.items],
        }
    return out


def trust(one: FolderTrust) -> JsonValue:
    """Return whether a folder is trusted."""
    return _with_uri(value(one), key="folder", uri="folder")


def request(one: PermissionRequest | Question) -> JsonValue:
    """Return a question to a person."""
    return _request(permission(one))


def counts(changes: ChangeCounts) -> dict[str, JsonValue]:
    """Return how much was changed."""
    return {
        "files": changes.files,
        "additions": changes.additions,
        "deletions": changes.deletions,
        "unreviewed": changes.unreviewed,
    }


def item(view: ItemView) -> dict[str, JsonValue]:
    """Return an item of a run: its ended event, or what has come so far."""
    out: dict[str, JsonValue] = {"item": view.item, "kind": view.kind}
    if view.ended is None:
        return out | _unfinished(view)
    return {**out, **as_object(value(view.ended))}


def result(one: RunResult, changes: JsonValue) -> dict[str, JsonValue]:
    """Return what a run came to."""
    out: dict[str, JsonValue] = {
        "run": one.run,
        "status": one.status,
        "usage": usage(one.usage),
        "changes": changes,
    }
    if one.text:
        out["message"] = one.text
    money = cost(one.usage.tokens)
    if money is not None:
        out["cost"] = money
    if one.error is not None:
        out["error"] = value(one.error)
    return out


def _activity(one: Activities) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {}
    if one.run is not None:
        out["run"] = one.run
    if one.compaction is not None:
        out["compaction"] = {"reason": one.compaction}
    if one.retry is not None:
        out["retry"] = {
            "attempt": one.retry.attempt,
            "maxAttempts": one.retry.max_attempts,
            "delayMs": one.retry.delay_ms,
        }
    if one.bash is not None:
        out["bash"] = {"command": one.bash}
    return out


def _unfinished(view: ItemView) -> dict[str, JsonValue]:
    started = view.started
    if isinstance(started, ToolStarted):
        out: dict[str, JsonValue] = {
            "call": started.call,
            "name": started.name,
            "content": [block(Text(text=view.text_so_far))] if view.text else [],
        }
        if view.running is not None:
            out["input"] = value(view.running.input)
            if view.running.details is not None:
                out["details"] = value(view.running.details)
        return out
    if view.kind == "thought":
        return {"text": view.text_so_far}
    return {"role": "assistant", "content": [block(Text(text=view.text_so_far))]}


def _request(one: JsonValue) -> JsonValue:
    if not isinstance(one, Mapping) or not isinstance(subject := one.get("subject"), Mapping):
        return one
    encoded = {**subject, **_uri_of(subject)}
    _ = encoded.pop("path", None)
    return {**one, "subject": encoded}


def _uri_of(subject: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    places = {
        "cwd": subject.get("cwd"),
        "uri": subject.get("path"),
        "folder": subject.get("folder"),
        "source": subject.get("source"),
    }
    return {name: Path(at).as_uri() for name, at in places.items() if isinstance(at, str)}


def _with_uri(one: JsonValue, *, key: str = "path", uri: str = "uri") -> JsonValue:
    if not isinstance(one, Mapping):
        return one
    rest = {name: item_ for name, item_ in one.items() if name != key}
    path = one.get(key)
    return {uri: Path(path).as_uri(), **rest} if isinstance(path, str) else rest


def _list(one: JsonValue) -> list[JsonValue]:
    return [*one] if isinstance(one, list) else []
