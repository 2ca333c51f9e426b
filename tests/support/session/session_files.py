"""Reads a session file as another program would, and holds it against what every session file promises."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FINISHED_CALLS = {"toolUse", "stop", "length"}


def read_entries(path: Path) -> list[Json]:
    """Give the header and the entries; every line is whole."""
    text = path.read_text("utf-8")
    assert text.endswith("\n"), f"{path.name} ends in the middle of a line"
    return [json.loads(line) for line in text.splitlines()]


def checked_entries(path: Path) -> list[Json]:
    """Give the entries of a session at rest, after checking what always holds.

    The header comes first, each entry continues the one before it, every tool call has exactly one result, and every
    run that started has ended.
    """
    header, *entries = read_entries(path)
    assert (header["type"], header["version"]) == ("session", 3)
    before: str | None = None
    for entry in entries:
        assert entry["parentId"] == before, entry
        before = entry["id"]
    assert len({entry["id"] for entry in entries}) == len(entries)
    calls = [call["id"] for call in tool_calls(entries)]
    answers = Counter(one["toolCallId"] for one in messages(entries, "toolResult"))
    assert answers == Counter(calls)
    started = [run for run, status in runs(entries) if status == "started"]
    ended = [run for run, status in runs(entries) if status != "started"]
    assert ended == started
    return entries


def messages(entries: Sequence[Json], role: str) -> list[Json]:
    """Give the messages of a role."""
    held = [entry["message"] for entry in entries if entry["type"] == "message"]
    return [message for message in held if message["role"] == role]


def tool_calls(entries: Sequence[Json]) -> list[Json]:
    """Give the tool calls that the model finished; those of a broken answer are never carried out."""
    return [
        part
        for message in messages(entries, "assistant")
        if message["stopReason"] in FINISHED_CALLS
        for part in message["content"]
        if part["type"] == "toolCall"
    ]


def said(entries: Sequence[Json], role: str = "user") -> list[str]:
    """Give the words of a role, message by message."""
    return [
        "".join(part.get("text", "") for part in message["content"])
        for message in messages(entries, role)
    ]


def runs(entries: Sequence[Json]) -> list[tuple[str, str]]:
    """Give how runs began and ended: their ids, each with a status, in order."""
    told = [entry for entry in entries if entry.get("customType") == "tiller.run"]
    return [(entry["data"]["run"], entry["data"]["status"]) for entry in told]
