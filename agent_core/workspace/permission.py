"""The words in which permission is asked and given, and the port of those who give it."""

from collections.abc import Mapping
from typing import Literal, Protocol

from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.records import dataclass

ToolKind = Literal["read", "edit", "execute", "other"]
Mode = Literal["plan", "ask", "auto", "yolo"]
Needs = Literal["network", "gitConfig"]
"""What a command asks for beyond its containment: the network, or the repository's configuration and hooks."""
Containment = Literal["full", "partial", "none"]
"""How far the processes of tools are held in: only `full` is a boundary."""

READ_ONLY_COMMANDS = frozenset(
    [
        "basename",
        "cat",
        "cksum",
        "cmp",
        "cut",
        "df",
        "dirname",
        "du",
        "echo",
        "false",
        "head",
        "id",
        "ls",
        "md5sum",
        "nl",
        "pwd",
        "readlink",
        "realpath",
        "sha256sum",
        "stat",
        "tail",
        "tr",
        "true",
        "uname",
        "wc",
        "which",
        "whoami",
    ]
)
"""Programs that cannot change anything whatever their arguments are.

`date` sets the clock, `file` compiles its own tables, and bash's `printf` runs what a subscript in an argument says.
Git is missing on purpose: its reading commands start whatever the repository's configuration names (`core.fsmonitor`,
`diff.external`, `textconv`), and that is a file that can be edited.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The call may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The call must not run; the reason is told to the model."""

    reason: str


Verdict = Allowed | Refused


class PermissionPolicy(Protocol):
    """Says whether a tool call may run. A policy that fails means no."""

    async def judge(
        self,
        *,
        call: ToolCallId,
        run: RunId | None,
        tool: str,
        kind: ToolKind,
        arguments: Mapping[str, object],
    ) -> Verdict:
        """Judge one call after its arguments were checked; waits when a person is asked."""
        ...
