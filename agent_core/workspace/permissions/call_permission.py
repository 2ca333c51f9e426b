"""The words in which permission is asked and given, and the port of those who give it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.protected_names import is_secret


class SecretAccess:
    """Remembers for one session which secret files may be read; nothing of it is kept on disk."""

    def __init__(self) -> None:
        self._allowed: set[Path] = set()

    @property
    def allowed(self) -> frozenset[Path]:
        """Return the files, and folders with all that is in them. Real paths."""
        return frozenset(self._allowed)

    def allow(self, path: Path) -> None:
        """Allow a file, or a folder with all that is in it.

        Args:
            path: Real, as the workspace resolved it: a link that is made later allows nothing else.
        """
        self._allowed.add(path)

    def withholds(self, path: Path, *, roots: Sequence[Path]) -> str | None:
        """Return why the content of a file is withheld; None: it may be read. Arguments as of `is_secret`."""
        why = is_secret(path, roots=roots)
        if why is None or not self._allowed.isdisjoint((path, *path.parents)):
            return None
        return why


ToolKind = Literal["read", "edit", "execute", "other"]
PolicyMode = Literal["plan", "ask", "auto", "yolo"]
AskedNeeds = Literal["network", "sockets", "gitConfig"]
"""Access beyond containment that models may request: network, unix sockets, a repository's settings and hooks."""
Needs = AskedNeeds | Literal["gitData", "uncontained"]
"""Access beyond containment that a process has; `gitData`, to write objects and refs, follows from its command line.

`uncontained`: the call was judged as one that is not contained. Without it no process starts uncontained where commands
are contained as a rule.
"""
LETS_IN: Mapping[Needs, str] = {
    "network": "the network: the internet and every service that listens on this machine",
    "sockets": "unix sockets: programs of yours that listen on them, such as the display, D-Bus, docker",
    "gitConfig": "git's configuration and hooks: what git runs from now on, also when you use it",
}
"""How a question names what a yes to each need lets in."""
SandboxLevel = Literal["full", "partial", "none"]
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


class Allowed(Value, frozen=True, kw_only=True):
    """The call may run."""


class CallRefused(Value, frozen=True, kw_only=True):
    """The call must not run; the reason is told to the model."""

    reason: str
    happened: str | None = None
    """The reason for people; None: it is for them as it is."""


CallVerdict = Allowed | CallRefused


class PermissionPolicy(Protocol):
    """Decision whether a tool call may run. A policy that fails refuses it."""

    async def judge(
        self,
        *,
        call: ToolCallId,
        run: RunId | None,
        tool: str,
        kind: ToolKind,
        arguments: Mapping[str, object],
    ) -> CallVerdict:
        """Judge one call after its arguments were checked; waits when a person is asked."""
        ...
