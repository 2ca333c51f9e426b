"""Tool calls as ACP shows them: kind, title, files, differences, steps. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from agent_core.events import ToolEnded, ToolStatus
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.acp.content import text_block, tool_content

AcpToolKind = Literal["read", "edit", "delete", "search", "execute", "think", "fetch", "other"]
KINDS: Final[Mapping[str, AcpToolKind]] = {
    "read": "read", "ls": "read", "diagnostics": "read", "edit": "edit", "write": "edit", "bash": "execute",
    "background": "execute", "grep": "search", "find": "search", "fetch": "fetch", "todo": "think", "plan": "think",
    "ask": "think", "task": "think",
}  # fmt: skip
STATUSES: Final[Mapping[ToolStatus, str]] = {"ok": "completed"}
"""Statuses of ended calls; any other is `failed`."""
STEPS: Final[Mapping[str, str]] = {
    "pending": "pending",
    "active": "in_progress",
    "done": "completed",
}
"""Statuses of steps; any other step is not shown."""
MAX_TEXT_BYTES: Final = 64 * 1024
"""A difference with a longer text on one side is sent as a unified diff."""
MAX_RAW_BYTES: Final = 16 * 1024
NO_NEWLINE: Final = "\\ No newline at end of file"
OWN_DIFF: Final = frozenset({"edit", "write"})


def tool_kind(name: str) -> AcpToolKind:
    """Return the kind of a tool."""
    return KINDS.get(name, "other")


def locations(arguments: JsonObject, root: Path) -> list[JsonValue]:
    """Return the file that a call names, with an absolute path."""
    path = arguments.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return []
    place: dict[str, JsonValue] = {"path": str(root / path)}
    offset = arguments.get("offset")
    if isinstance(offset, int) and offset > 0:
        place["line"] = offset
    return [place]


def ended_content(event: ToolEnded, arguments: JsonObject) -> list[JsonValue]:
    """Return what an ended call shows: the difference that it made, or its output."""
    details = as_object(event.details)
    path = details.get("path")
    if event.status == "ok" and event.name in OWN_DIFF and isinstance(path, str):
        patch, created = as_text(details.get("patch")), details.get("created") is True
        text = as_text(arguments.get("content"))
        if created and len(text) <= MAX_TEXT_BYTES:
            return [{"type": "diff", "path": path, "oldText": None, "newText": text}]
        if patch and details.get("truncated") is not True:
            return differences(path, patch)
        if patch:
            return [{"type": "content", "content": text_block(patch)}]
    return tool_content(event.content)


def differences(path: str, patch: str) -> list[JsonValue]:
    """Return a difference for each hunk of a unified diff of one file."""
    hunks: list[tuple[list[str], list[str]]] = []
    for line in patch.split("\n"):
        if line.startswith("@@"):
            hunks.append(([], []))
        elif hunks and line and line != NO_NEWLINE:
            mark, text = line[0], line[1:]
            if mark in " -":
                hunks[-1][0].append(text)
            if mark in " +":
                hunks[-1][1].append(text)
    texts = [("\n".join(old), "\n".join(new)) for old, new in hunks]
    if any(len(text) > MAX_TEXT_BYTES for pair in texts for text in pair):
        return [{"type": "content", "content": text_block(patch)}]
    return [{"type": "diff", "path": path, "oldText": old, "newText": new} for old, new in texts]


def plan_entries(details: JsonValue) -> list[JsonValue] | None:
    """Return the steps of a result of the tool `todo`; None: it has none."""
    steps = as_object(details).get("todo")
    if not isinstance(steps, list | tuple):
        return None
    return [
        {"content": as_text(step.get("text")), "priority": "medium", "status": status}
        for step in steps
        if is_object(step) and (status := STEPS.get(as_text(step.get("status")))) is not None
    ]
