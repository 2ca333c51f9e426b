"""Stored items of a session, as the events that made them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from agent_core.events import (
    CompactionEnded,
    Event,
    MessageEnded,
    ThoughtEnded,
    ToolEnded,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, is_object
from tiller_server.agent_client.connection import AgentClient, AgentRefused
from tiller_server.agent_client.events import value_of

PAGE: Final = 50


async def stored_events(agent: AgentClient, session: str, cursor: JsonValue) -> list[Event]:
    """Return the events of everything before a cursor, oldest first.

    Raises:
        AgentRefused: It cannot be read.
    """
    pages: list[Sequence[JsonValue]] = []
    while isinstance(cursor, str):
        page = await _page(agent, session, cursor)
        items = page.get("items")
        pages.append(items if isinstance(items, list) else [])
        cursor = page.get("prev")
    return [event for page in reversed(pages) for item in page for event in item_events(item)]


async def _page(agent: AgentClient, session: str, cursor: str) -> JsonObject:
    params: JsonObject = {"session": session, "before": cursor, "limit": PAGE}
    try:
        return as_object(await agent.request("agent/session/read", {**params, "part": "full"}))
    except AgentRefused as error:
        if error.data.get("kind") != "UnsupportedCapability":
            raise
        # Together they are more than one answer may hold.
        return as_object(await agent.request("agent/session/read", params))


def item_events(given: JsonValue) -> list[Event]:
    """Return the events of an item; none for a kind that ACP does not show, or one that cannot be read."""
    item = as_object(given)
    whole: JsonObject = {"run": None, "turn": None, "content": [], "details": None, **item}
    try:
        match item.get("kind"):
            case "message":
                return [value_of(whole, MessageEnded)]
            case "thought":
                return [value_of(whole, ThoughtEnded)]
            case "tool":
                return _tool_events(whole)
            case "summary":
                counts: JsonObject = {"tokensBefore": 0, "aborted": False, "willRetry": False}
                return [value_of({**counts, "reason": "manual", **whole}, CompactionEnded)]
            case _:
                return []
    except (msgspec.ValidationError, ValueError, TypeError):
        return []


def _tool_events(item: JsonObject) -> list[Event]:
    title = item.get("title") or item.get("name")
    # A stored call does not name its run.
    named: JsonObject = {**item, "run": item.get("run") or "", "title": title}
    events: list[Event] = [value_of(named, ToolStarted)]
    if is_object(item.get("input")):
        events.append(value_of(named, ToolRunning))
    if item.get("status") is not None:
        events.append(value_of({**named, "durationMs": None}, ToolEnded))
    return events
