"""Reads a command line strictly: every doubt makes it unclear."""

from typing import Final

from agent_core.workspace.permissions.shell.grammar import commands_by_grammar
from agent_core.workspace.permissions.shell.values import Argv, PlainCommandLine, UnclearCommandLine
from agent_core.workspace.permissions.shell.word_splitter import odd_character, split_line

LONGEST_BYTES: Final = 8192
MOST_COMMANDS: Final = 100
"""The grammar takes 100 ms for two thousand that are joined by `|`, and nobody would read them before they say yes."""


def read_command(text: str) -> PlainCommandLine | UnclearCommandLine:
    """Return which commands a line of bash runs, with their exact words, or why that is not certain.

    Two readings that know nothing of one another must agree. Never raises.
    """
    if problem := _unreadable(text):
        return UnclearCommandLine(reason=problem)
    commands = split_line(text)
    if isinstance(commands, UnclearCommandLine):
        return commands
    if problem := _doubt(text, commands):
        return UnclearCommandLine(reason=problem)
    return PlainCommandLine(commands=commands)


def _unreadable(text: str) -> str | None:
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_BYTES:
        return f"it is longer than {LONGEST_BYTES} bytes"
    odd = odd_character(text)
    if odd is None:
        return None
    return f"it has the character U+{ord(odd):04X}, which is not seen or looks like another one"


def _doubt(text: str, commands: tuple[Argv, ...]) -> str | None:
    """Ask the grammar for its opinion on what was read."""
    if len(commands) > MOST_COMMANDS:
        return f"it runs more than {MOST_COMMANDS} commands"
    try:
        by_grammar = commands_by_grammar(text)  # decision 0017
    except (ImportError, OSError, RuntimeError, TypeError, ValueError):
        return "the grammar of bash (tree-sitter-bash) is missing or does not fit this installation"
    return (
        None if by_grammar == commands else "it is more than plain commands to the grammar of bash"
    )
