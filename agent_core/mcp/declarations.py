"""Tool declarations of a server, with their hashes and checks. Pure."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import scrub
from agent_core.kernel.values import Value

PREFIX: Final = "mcp__"
NAME_CHARS: Final = 64
"""Providers take no longer names of tools."""
NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
DIGITS: Final = 8
MOST_TOOLS: Final = 128
MOST_BYTES: Final = 64 * 1024
"""Of one tool's declaration: it is sent with every request."""
MOST_TOGETHER_BYTES: Final = 512 * 1024
"""Of all of a server: a person is to look through it."""


class Declared(Value, frozen=True, kw_only=True, dict=True):
    """One tool as its server declares it; nothing of it was changed."""

    name: str
    description: str
    parameters: JsonObject
    """The JSON Schema of its arguments."""
    title: str | None = None
    output: JsonObject | None = None
    annotations: JsonObject | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the server marks it as changing nothing, and not as reaching out into the world."""
        marks = self.annotations or {}
        return marks.get("readOnlyHint") is True and marks.get("openWorldHint") is not True

    @cached_property
    def text(self) -> str:
        """The whole declaration as JSON in a fixed order. The user sees it, and the hash is computed from it."""
        whole: JsonObject = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "annotations": self.annotations,
            "inputSchema": self.parameters,
            "outputSchema": self.output,
        }
        said = {name: value for name, value in whole.items() if value is not None}
        return json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the declaration's text, in hex."""
        return hashlib.sha256(scrub(self.text).encode()).hexdigest()


class Believed(Value, frozen=True, kw_only=True):
    """The tools of a list that can be used, and what is wrong with the others, a sentence each."""

    tools: tuple[Declared, ...] = ()
    problems: tuple[str, ...] = ()


def believed(tools: Iterable[Declared]) -> Believed:
    """Choose the tools that can be used."""
    kept: dict[str, Declared] = {}
    problems: list[str] = []
    room = MOST_TOGETHER_BYTES
    for tool in tools:
        why = _why_not(tool, kept)
        if why is not None:
            problems.append(f"its tool {tool.name[:NAME_CHARS]!r} is left out: {why}")
            continue
        room -= len(scrub(tool.text).encode())
        if len(kept) >= MOST_TOOLS or room < 0:
            problems.append(f"only its first {len(kept)} tools are used; it has too many")
            break
        kept[tool.name] = tool
    return Believed(tools=tuple(kept.values()), problems=tuple(problems))


def tool_name(server: str, tool: str, *, taken: Collection[str]) -> str:
    """Return the name under which models see a tool: `mcp__server__tool`, in the letters that every provider takes.

    Args:
        server: The name of the server.
        tool: Its own name of the tool.
        taken: Names that others have already.
    """
    plain = NOT_IN_NAMES.sub("_", f"{PREFIX}{server}__{tool}")
    if len(plain) <= NAME_CHARS and plain not in taken:
        return plain
    digest = hashlib.sha256(f"{server}/{tool}".encode("utf-8", "replace")).hexdigest()[:DIGITS]
    return f"{plain[: NAME_CHARS - DIGITS - 1]}_{digest}"


def is_of_server(name: str) -> bool:
    """Return whether a tool name, with or without `+` or `-` before it, is one of an MCP server's tool."""
    return name.lstrip("+-").startswith(PREFIX)


def _why_not(tool: Declared, kept: Collection[str]) -> str | None:
    if not tool.name or len(tool.name) > 2 * NAME_CHARS or not tool.name.isprintable():
        return "its name is empty, too long, or cannot be read"
    if tool.name in kept:
        return "there is one of that name already"
    if tool.parameters.get("type") != "object":
        return (
            f'its arguments are to be of type "object", not {_short(tool.parameters.get("type"))}'
        )
    try:
        size = len(scrub(tool.text).encode())
    except RecursionError:
        return "its schema is nested too deeply"
    if size > MOST_BYTES:
        return f"its declaration has {size} bytes, {MOST_BYTES} is the most"
    return None


def _short(value: JsonValue) -> str:
    return repr(value)[:NAME_CHARS]
