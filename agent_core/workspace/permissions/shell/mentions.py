"""Finds every command that may run anywhere inside a command line. Only to be used against it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_core.workspace.permissions.shell.command_variants import pieces
from agent_core.workspace.permissions.shell.scanner import ScannedCommands, scan
from agent_core.workspace.permissions.shell.values import Argv
from agent_core.workspace.permissions.shell.wrappers import SHELLS, STARTERS, base_name, is_shell

DEEPEST: Final = 5
"""Lines in lines: `sh -c "sh -c '…'"`."""
MOST_CHARS: Final = 128 * 1024
"""Of all lines together; Linux takes no longer argument."""
MOST_STARTS: Final = 256
"""Words of one command at which another may begin."""
MOST_TOKENS: Final = 200_000
"""Of all commands that wrappers may start."""
RUNNING_BUILTINS: Final = frozenset(
    {"alias", "bind", "builtin", "command", "complete", "compgen", "coproc", "env", "eval", "exec", "fc", "mapfile"}
    | {"readarray", "set", "time", "trap"}
)  # fmt: skip
RUNNERS: Final = SHELLS | STARTERS | RUNNING_BUILTINS
RUN_BEHIND: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})  # fmt: skip
FINDERS: Final = frozenset({"find", "gfind", "fd", "fdfind"})
PRINTERS: Final = frozenset({"echo", "printf"})
JOINED: Final = frozenset({"eval", "ssh", "su"})
IS_LINE: Final = re.compile(r"[\s;&|$`<>(){}]")
NAMED: Final = re.compile(r"-*[A-Za-z_][A-Za-z0-9_-]*=")


def mentioned(text: str) -> tuple[Argv, ...]:
    """Return every command that may run somewhere inside: in substitutions, behind wrappers, in `sh -c "…"`.

    It guesses where it must, so it both misses what is only known at run time and names what never runs. Never raises.
    """
    commands: dict[Argv, None] = {}
    lines = [(text[:MOST_CHARS], 0)]
    chars = token_count = 0
    while lines:
        line, depth = lines.pop()
        chars += len(line)
        found = scan(line)
        fresh = [argv for argv in dict.fromkeys(found.commands) if argv not in commands]
        commands.update(dict.fromkeys(fresh))
        if not found.is_whole:
            commands.update(dict.fromkeys(pieces(line)))
        for argv in fresh if token_count < MOST_TOKENS else ():
            for start in _started(argv):
                token_count += len(start)
                commands[start] = None
        if depth < DEEPEST and chars < MOST_CHARS:
            lines += [(inner, depth + 1) for inner in _lines_in(fresh, found)]
    return tuple(commands)


def _started(argv: Argv) -> Iterator[Argv]:
    """Return what a wrapper may start: every end of its words, because options may take values."""
    if _is_runner(argv[0]):
        for start in range(1, min(len(argv), MOST_STARTS)):
            yield argv[start : start + MOST_STARTS]
    elif base_name(argv[0]) in FINDERS:
        for at, word in enumerate(argv[:-1]):
            if word in RUN_BEHIND:
                yield argv[at + 1 : at + 1 + MOST_STARTS]


def _lines_in(fresh: Sequence[Argv], found: ScannedCommands) -> Iterator[str]:
    """Return the texts that are lines of a shell again."""
    yield from found.inner
    for argv in fresh:
        if base_name(argv[0]) in JOINED:
            yield " ".join(argv[1:])
        if _is_runner(argv[0]):
            yield from _texts(argv[1:])
    if any(is_shell(word) for argv in fresh for word in argv[:MOST_STARTS]):
        yield from found.fed
        for argv in fresh:
            if argv[0] in PRINTERS:
                yield from _texts(argv[1:])


def _texts(tokens: Iterable[str]) -> Iterator[str]:
    for word in tokens:
        if IS_LINE.search(word):
            yield word
            if named := NAMED.match(word):
                yield word[named.end() :]


def _is_runner(word: str) -> bool:
    return base_name(word) in RUNNERS or is_shell(word) or base_name(word).startswith("ld-")
