"""Which tool calls may run without a person: the first, narrow policy.

Until the full policy exists a command is either on a short read-only list or refused with the words how to allow it;
`yolo` runs everything, and only the user's own settings can choose it.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

ToolKind = Literal["read", "edit", "execute", "other"]
Mode = Literal["plan", "ask", "auto", "yolo"]

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

SHELL_SYNTAX = frozenset("`$<>|&;\n\r(){}*?[]~#!\\")
"""With any of these outside of single quotes a command is more than its words."""


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

    async def judge(self, *, tool: str, kind: ToolKind, arguments: Mapping[str, object]) -> Verdict:
        """Judge one call after its arguments were checked."""
        ...


class ModePolicy:
    """Judges by the session's mode alone; the mode may change between calls."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode

    async def judge(self, *, tool: str, kind: ToolKind, arguments: Mapping[str, object]) -> Verdict:
        """Judge one call."""
        if kind == "read" or (self.mode == "yolo"):
            return Allowed()
        if self.mode == "plan":
            return Refused(
                reason=f"{tool} is refused in plan mode: nothing may be changed. Describe the change instead."
            )
        if kind == "edit":
            return Allowed()
        command = arguments.get("command")
        if kind == "execute" and isinstance(command, str) and is_read_only(command):
            return Allowed()
        return Refused(reason=_how_to_allow(tool, command))


def is_read_only(command: str) -> bool:
    """Tell whether a command line is one plain call of a program that only reads.

    Quoting is understood; any shell syntax outside of single quotes makes the answer no, and so does a character
    that nobody sees.
    """
    if not command.isprintable() or SHELL_SYNTAX & set(_outside_single_quotes(command)):
        return False
    try:
        argv = shlex.split(command)
    except ValueError:
        return False
    match argv:
        case [program, *words]:
            return program in READ_ONLY_COMMANDS and not any(_leads_outside(word) for word in words)
        case _:
            return False


def _leads_outside(word: str) -> bool:
    """Tell whether an argument may name something outside of the workspace, also behind an option."""
    if word.startswith("-"):
        return "/" in word or "~" in word
    return word.startswith(("/", "~")) or ".." in word.split("/")


def _outside_single_quotes(command: str) -> str:
    """Leave out what stands in single quotes; a quote inside of the other kind is an ordinary character."""
    outside: list[str] = []
    quote = ""
    for char in command:
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif quote != "'":
            outside.append(char)
    return "".join(outside)


def _how_to_allow(tool: str, command: object) -> str:
    what = f"the command {command!r}" if isinstance(command, str) else f"the tool {tool!r}"
    return (
        f"{what} was refused: it may change things and nobody can be asked yet. The user can allow commands with "
        '"permission": {"mode": "yolo"} in their own settings.json, or `tiller run --permission yolo`. '
        "Go on without it, or tell the user what to run."
    )
