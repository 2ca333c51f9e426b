"""Commands about sessions: choosing, reading and exporting them."""

from collections.abc import Mapping, Sequence
from typing import Final

import anyio

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object, as_text
from agent_core.providers.messages.request_options import nearest
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.rpc.commands.context import (
    Handler,
    RpcContext,
    objects,
    text_field,
    text_of_blocks,
)
from tiller_server.rpc.files import session_of, write_document

TOKENS: Final[Mapping[str, str]] = {
    "input": "in",
    "output": "out",
    "cacheRead": "cacheRead",
    "cacheWrite": "cacheWrite",
}


async def new_session(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Begin another session."""
    return {"data": await _switch(context, "new")}


async def switch_session(context: RpcContext, command: JsonObject) -> JsonObject:
    """Open a stored session."""
    path = text_field(command, "sessionPath")
    root = context.session.root
    name = await anyio.to_thread.run_sync(session_of, context.sessions, path, root)
    return {"data": await _switch(context, name)}


async def fork(context: RpcContext, command: JsonObject) -> JsonObject:
    """Open a copy that ends before a message of the user."""
    entry = text_field(command, "entryId")
    forked = await context.session.request("agent/session/fork", atEntry=entry)
    switched = await _switch(context, as_text(forked.get("session")))
    return {"data": {"text": as_text(forked.get("editorText")), **switched}}


async def clone(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Open a copy."""
    forked = await context.session.request("agent/session/fork")
    return {"data": await _switch(context, as_text(forked.get("session")))}


async def _switch(context: RpcContext, session: str) -> JsonObject:
    if context.session.state.is_busy:
        _ = await context.session.request("agent/run/cancel", scope="session")
    try:
        await context.session.open(session)
    except AgentRefused as error:
        if error.data.get("kind") != "PermissionDenied":
            raise
        return {"cancelled": True}  # an extension wants to stay in the session
    return {"cancelled": False}


async def get_state(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the state of the session."""
    session, config = context.session, context.session.state.config
    out: dict[str, JsonValue] = {
        "model": None if config.model is None else await context.model(config.model),
        "thinkingLevel": nearest(config.thinking, await context.thinking_levels()),
        "isStreaming": session.activity.is_running,
        "isCompacting": session.activity.is_compacting,
        "steeringMode": config.steering,
        "followUpMode": config.follow_up,
        "sessionFile": await context.file(),
        "sessionId": session.id,
        "sessionName": session.state.title or None,
        "autoCompactionEnabled": config.auto_compact,
        "messageCount": len(await session.messages()),
        "pendingMessageCount": len([one for one in session.state.queue if one.custom is None]),
    }
    return {"data": {name: one for name, one in out.items() if one is not None}}


async def get_messages(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the messages that the model is shown."""
    return {"data": {"messages": await context.session.messages()}}


async def get_entries(context: RpcContext, command: JsonObject) -> JsonObject:
    """Return the entries of the session, or those after one."""
    entries = await context.session.entries()
    since = command.get("since")
    if since is not None:
        place = next((at for at, one in enumerate(entries) if one.get("id") == since), None)
        if place is None:
            message = f"Entry not found: {since}"
            raise UsageError(message)
        entries = entries[place + 1 :]
    return {"data": {"entries": entries, "leafId": await context.session.leaf()}}


async def get_tree(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the entries as a tree."""
    tree = tree_of(await context.session.entries())
    return {"data": {"tree": tree, "leafId": await context.session.leaf()}}


def tree_of(entries: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the entries without a parent, each with its children and its label."""
    labels = {one.get("targetId"): one for one in entries if one.get("type") == "label"}
    nodes: dict[JsonValue, dict[str, JsonValue]] = {}
    children: dict[JsonValue, list[JsonObject]] = {}
    for entry in entries:
        below = children.setdefault(entry.get("id"), [])
        node: dict[str, JsonValue] = {"entry": entry, "children": below}
        label = labels.get(entry.get("id"), {})
        if label.get("label"):
            node |= {"label": label["label"], "labelTimestamp": label.get("timestamp")}
        nodes[entry.get("id")] = node
    roots: list[JsonObject] = []
    for node in nodes.values():
        parent = as_object(node["entry"]).get("parentId")
        children.get(parent, roots).append(node)
    return roots


async def get_fork_messages(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the messages of the user, before each of which `fork` can end a copy."""
    found: list[JsonValue] = []
    for entry in await context.session.entries():
        message = as_object(entry.get("message"))
        text = text_of_blocks(message.get("content"))
        if message.get("role") == "user" and text:
            found.append({"entryId": entry.get("id"), "text": text})
    return {"data": {"messages": found}}


async def get_last_assistant_text(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the text of the last answer."""
    for message in reversed(await context.session.messages()):
        content = message.get("content")
        is_answer = message.get("role") == "assistant"
        if is_answer and (content or message.get("stopReason") != "aborted"):
            text = text_of_blocks(content).strip()
            return {"data": {"text": text} if text else {}}
    return {"data": {}}


async def get_commands(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return the slash commands that a prompt can call."""
    listed = objects((await context.session.request("agent/command/list")).get("commands"))
    shown = [one for one in listed if one.get("source") != "builtin"]
    return {"data": {"commands": [_command_record(one) for one in shown]}}


def _command_record(command: JsonObject) -> JsonObject:
    """Return a command; the server does not tell its file."""
    kept = {name: command[name] for name in ("name", "description") if command.get(name)}
    info = {"path": "", "source": "tiller", "scope": "user", "origin": "top-level"}
    return {**kept, "source": command.get("source"), "sourceInfo": info}


async def get_session_stats(context: RpcContext, _command: JsonObject) -> JsonObject:
    """Return counts, tokens and cost of all branches."""
    stats = await context.session.request("agent/session/stats")
    said = [as_object(one.get("message")) for one in await context.session.entries()]
    messages = [one for one in said if one]
    roles = [one.get("role") for one in messages]
    called = [objects(one.get("content")) for one in messages if one.get("role") == "assistant"]
    tokens = as_object(stats.get("tokens"))
    counts = {name: _count(tokens.get(wire)) for name, wire in TOKENS.items()}
    out: dict[str, JsonValue] = {
        "sessionFile": await context.file(),
        "sessionId": context.session.id,
        "userMessages": roles.count("user"),
        "assistantMessages": roles.count("assistant"),
        "toolCalls": sum(one.get("type") == "toolCall" for blocks in called for one in blocks),
        "toolResults": roles.count("toolResult"),
        "totalMessages": len(roles),
        "tokens": {**counts, "total": sum(counts.values())},
        "cost": as_object(stats.get("cost")).get("amount") or 0,
    }
    window = as_object(stats.get("context"))
    if size := window.get("size"):
        used, percent = window.get("used"), window.get("percent")
        out["contextUsage"] = {"tokens": used, "contextWindow": size, "percent": percent}
    return {"data": {name: one for name, one in out.items() if one is not None}}


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


async def export_html(context: RpcContext, command: JsonObject) -> JsonObject:
    """Write the session as a page; the response has its path."""
    given = command.get("outputPath") is not None
    name = (
        text_field(command, "outputPath") if given else f"tiller-session-{context.session.id}.html"
    )
    path = context.session.root / name
    document = await context.session.export("html")
    if not document:
        message = "the session has no messages yet, so there is nothing to export"
        raise UsageError(message)
    await anyio.to_thread.run_sync(write_document, path, document.encode())
    return {"data": {"path": str(path)}}


async def set_session_name(context: RpcContext, command: JsonObject) -> JsonObject:
    """Name the session."""
    name = text_field(command, "name").strip()
    if not name:
        message = "Session name cannot be empty"
        raise UsageError(message)
    renamed = await context.session.request("agent/session/rename", title=name)
    context.session.state.title = as_text(renamed.get("title"))
    return {}


SWITCHES: Final[Mapping[str, Handler]] = {
    "new_session": new_session,
    "switch_session": switch_session,
    "fork": fork,
    "clone": clone,
}
"""Commands that put another session in front."""
HANDLERS: Final[Mapping[str, Handler]] = {
    **SWITCHES,
    "get_state": get_state,
    "get_messages": get_messages,
    "get_entries": get_entries,
    "get_tree": get_tree,
    "get_fork_messages": get_fork_messages,
    "get_last_assistant_text": get_last_assistant_text,
    "get_commands": get_commands,
    "get_session_stats": get_session_stats,
    "export_html": export_html,
    "set_session_name": set_session_name,
}
