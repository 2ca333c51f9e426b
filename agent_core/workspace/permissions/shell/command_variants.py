"""Readings of a sequence of words: the commands that it can mean."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_core.workspace.permissions.shell.values import Argv

ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=.*", re.DOTALL)
LIST: Final = re.compile(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)")
BEFORE_COMMAND: Final = frozenset(
    {"!", "then", "else", "elif", "do", "if", "while", "until", "{", "}", "done", "fi", "esac"}
)
NO_COMMAND: Final = frozenset({"for", "select", "case", "function", "in"})
MOST_EXPANSIONS: Final = 64
"""Of the words that one pair of braces makes."""


def ways_to_read(tokens: Sequence[str]) -> Iterator[Argv]:
    """Return the commands that words between two joins can mean, the likeliest first."""
    # Whether braces were quoted is not known here, so they are read both ways.
    listed = itertools.chain.from_iterable(_listed(word) for word in tokens)
    for argv in dict.fromkeys((_command(listed), _command(tokens))):
        if not argv or argv[0] in NO_COMMAND:
            continue
        yield argv
        if "" in argv:
            yield tuple(word for word in argv if word)
        # No program has a name with a blank in it; this is "$@", or a line that a variable holds.
        if len(parts := argv[0].split()) > 1:
            yield (*parts, *argv[1:])


def pieces(text: str) -> Iterator[Argv]:
    """Return the words between all signs that might join commands, for a text whose quotes do not close."""
    for line in re.split(r"[;&|\n(){}`]|\$\(", text):
        if argv := tuple(re.sub(r"[\"'\\]", "", line).split()):
            yield from ways_to_read(argv)


def _command(tokens: Iterable[str]) -> Argv:
    return tuple(itertools.dropwhile(_is_before_command, tokens))


def _is_before_command(word: str) -> bool:
    return not word or word in BEFORE_COMMAND or ASSIGNMENT.fullmatch(word) is not None


def _listed(word: str) -> Sequence[str]:
    """Return the words of `{a,b}`, else the word."""
    found = LIST.fullmatch(word)
    if found is None:
        return (word,)
    before, listed, after = found.groups()
    return [f"{before}{one}{after}" for one in listed.split(",")[:MOST_EXPANSIONS]]
