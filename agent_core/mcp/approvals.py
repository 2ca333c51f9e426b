"""Store of the user's decisions on a server's tools, with hashes to compare with the current tools. Blocking."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from agent_core.kernel import JsonObject, JsonValue, rfc3339
from agent_core.kernel.json import is_object
from agent_core.kernel.values import Value
from agent_core.mcp.declarations import Declared
from agent_core.mcp.definitions import Server
from agent_core.resources.trust.decision_file import DecisionFile, texts_of

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
    return f"user {server.name}" if server.origin == "user" else f"{root} {server.name}"


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
