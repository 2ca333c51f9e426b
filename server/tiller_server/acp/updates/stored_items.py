"""Stored items of a session, as the events that made them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from agent_core.events import (
    CompactionEnded,
    Event,
    MessageDelta,
    MessageEnded,
    ThoughtDelta,
    ThoughtEnded,
    ToolEnded,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import ItemId, JsonObject, JsonValue, RunId
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.messages import text_of
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


def run_events(snapshot: JsonObject) -> list[Event]:
    """Return the events of the run that goes on, so far; none when nothing runs."""
    run = as_object(snapshot.get("run"))
    items = run.get("items")
    return [
        event
        for item in (items if isinstance(items, list) else [])
        for event in _item_so_far(as_object(item), as_text(run.get("id")))
    ]


def _item_so_far(item: JsonObject, run: str) -> list[Event]:
    """Return the events of an item of a run; a text of the model that is not stored yet may grow."""
    if "turn" in item or item.get("role") == "user":
        return item_events({**item, "run": run})
    identity, of_run = ItemId(as_text(item.get("item"))), RunId(run)
    for event in item_events({**item, "run": run}):
        match event:
            case MessageEnded(content=content):
                return [MessageDelta(run=of_run, turn=None, item=identity, text=text_of(content))]
            case ThoughtEnded(text=text):
                return [ThoughtDelta(run=of_run, turn=None, item=identity, text=text)]
            case _:
                return item_events({**item, "run": run})
    return []


def item_events(given: JsonValue) -> list[Event]:
    """Return the events of an item; none for a kind that ACP does not show, or one that cannot be read."""
    item = as_object(given)
    # ACP has no usage of a message, and an item of the past needs no run.
    parts: JsonObject = {name: part for name, part in item.items() if name != "usage"}
    whole: JsonObject = {"run": "", "turn": None, "content": [], "details": None, **parts}
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
