"""Declarations of a server's tools, and the store of the user's decisions on them."""

import difflib
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec

from agent_core.kernel import JsonObject, JsonValue, rfc3339
from agent_core.kernel.json import is_object, scrub
from agent_core.kernel.values import Value
from agent_core.mcp.definitions import Server
from agent_core.resources.trust.workspace_trust import DecisionFile, texts_of

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


KEPT_CHARS: Final = 16 * 1024
ApprovalDecision = Literal["approved", "refused"]


class ServerApproval(Value, frozen=True, kw_only=True):
    """The user's decision on one server."""

    said: ApprovalDecision
    way: str
    """How it was reached then: the hash of what the user's own file says of it; empty for a project's, which its trust covers."""
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """By the server's own name of the tool."""
    texts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """The declarations as they were, to show what has changed."""


class ToolListDiff(Value, frozen=True, kw_only=True):
    """How the tools of a server differ from what was approved."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    difference: str = ""
    """Full texts of what is new, and a unified diff of what has changed."""
    moved: bool = False
    """It is reached in another way than it was."""

    @property
    def must_ask(self) -> bool:
        """Whether a tool is new or changed since the approval. A removed tool needs no question."""
        return bool(self.added or self.changed)


def new_approval(said: ApprovalDecision, tools: Sequence[Declared], *, way: str) -> ServerApproval:
    """Make a word for what is there."""
    return ServerApproval(
        said=said,
        way=way,
        hashes={tool.name: tool.hash for tool in tools},
        texts={tool.name: tool.text for tool in tools if len(tool.text) <= KEPT_CHARS},
    )


def is_approved(tool: Declared, word: ServerApproval | None, *, way: str) -> bool:
    """Return whether a tool is what was approved. Pure."""
    if word is None or word.said != "approved" or word.way != way:
        return False
    return word.hashes.get(tool.name) == tool.hash


def compare_tools(
    tools: Sequence[Declared], word: ServerApproval | None, *, way: str
) -> ToolListDiff:
    """Compare what is there with what was approved. Pure."""
    approved: Mapping[str, str] = {} if word is None else word.hashes
    moved = word is not None and word.way != way
    here = {tool.name: tool for tool in tools}
    added = tuple(name for name in here if name not in approved)
    changed = tuple(
        name
        for name, tool in here.items()
        if name in approved and (moved or approved[name] != tool.hash)
    )
    removed = tuple(name for name in approved if name not in here)
    texts: Mapping[str, str] = {} if word is None else word.texts
    lines: list[str] = []
    for name in (*changed, *added):
        # All of it: what was not shown was not approved. How much there can be is bounded where it is believed.
        lines.extend(_of_tool(here[name], texts.get(name), is_new=name in added))
    return ToolListDiff(
        added=added, removed=removed, changed=changed, difference="\n".join(lines), moved=moved
    )


class ApprovalStore:
    """The words about all servers of a user, in one file for their eyes only."""

    def __init__(self, path: Path) -> None:
        self._file = DecisionFile(path, section="servers", else_="no MCP server is approved")

    def approval(self, key: str) -> ServerApproval | None:
        """Return the decision on a server; None if there is none.

        Raises:
            ConfigError: The file cannot be read, so no approval is known and none applies.
        """
        return _word(self._file.entries().get(key))

    def record(self, key: str, word: ServerApproval, *, at_ms: int) -> None:
        """Store a decision; it replaces the earlier decision on the server.

        Raises:
            ConfigError: The file cannot be read or written; it is unchanged.
        """
        made: JsonObject = {
            "said": word.said,
            "at": rfc3339(at_ms),
            "way": word.way,
            "hashes": dict(word.hashes),
            "texts": dict(word.texts),
        }
        self._file.change(lambda servers: {**servers, key: made})


def key_of(server: Server, root: Path) -> str:
    """Return what a server is known by in the store."""
    match server.origin:
        case "user":
            return f"user {server.name}"
        case "project":
            return f"{root} {server.name}"
        case "client":
            return f"client {root} {server.name}"


def _of_tool(tool: Declared, before: str | None, *, is_new: bool) -> Iterator[str]:
    after = tool.text.splitlines()
    if is_new:
        yield from after
        return
    if before is None:
        yield f"{tool.name}: what it was is not known any more; this is what it is:"
        yield from after
        return
    names = (f"approved/{tool.name}", f"now/{tool.name}")
    diff = difflib.unified_diff(before.splitlines(), after, *names, lineterm="")
    yield from diff


def _word(entry: JsonValue) -> ServerApproval | None:
    if not is_object(entry):
        return None
    said, way = entry.get("said"), entry.get("way")
    if said not in {"approved", "refused"} or not isinstance(way, str):
        return None
    return ServerApproval(
        said="approved" if said == "approved" else "refused",
        way=way,
        hashes=texts_of(entry.get("hashes")),
        texts=texts_of(entry.get("texts")),
    )
