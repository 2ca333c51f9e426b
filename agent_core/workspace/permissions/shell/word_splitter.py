"""Splits a command line into words where that leaves no doubt: bash's own syntax, without anything that expands."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.workspace.permissions.shell.values import Argv, UnclearCommandLine

PIECE: Final = re.compile(
    r"""
    (?P<bare> [A-Za-z0-9_./:@%+,=^-]+
        | (?<=[A-Za-z0-9_^])~   # elsewhere it may be somebody's home
        | (?<=@)\{[0-9]+\}      # neither a list nor a range, so no expansion: HEAD@{1}
    )
    | '(?P<single>[^']*)'
    | "(?P<double>[^"$`\\!]*)"
    """,
    re.VERBOSE,
)
# Outside of quotes only ASCII: which other characters end a word depends on the locale of the shell.
BLANK: Final = re.compile(r"[ \t]+(?:\\\n[ \t]*)*")
JOIN: Final = re.compile(r"&&|\|\||[|;\n]")
# Readers do not agree on whether the line goes on behind a backslash at the end of a comment; in bash it does not.
COMMENT: Final = re.compile(r"#[^\n]*(?<!\\)(?=\n|\Z)")
OPENS: Final = re.compile(r"\((?!\()|\{(?=[ \t\n])|!(?=[ \t])")
"""Where the name of a program could stand. `((` counts, `{a` is a word, and `!(` a pattern."""
CLOSES: Final = re.compile(r"\)|\}(?=[ \t\n;|&)]|$)")
CLOSERS: Final[Mapping[str, str]] = {"(": ")", "{": "}"}
MOST_OPEN: Final = 8
"""Groups in groups."""
NOT: Final = "!"
NEEDS_COMMAND: Final = frozenset({"&&", "||", "|", "(", "{"})
RESERVED: Final = frozenset(
    {"!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function"}
    | {"if", "in", "select", "then", "time", "until", "while"}
)  # fmt: skip
UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks by their category that nobody sees."""

UNDOUBTED: Final = "what it runs cannot be said before it runs"
BEYOND: Final[Mapping[str, str]] = {
    "$": f"it uses a variable or a substitution ($), so {UNDOUBTED}",
    "`": f"it puts the output of another command into its words (`…`), so {UNDOUBTED}",
    "\\": "it has a backslash outside of single quotes; write such a word in single quotes",
    "!": "it has an exclamation mark outside of single quotes, which can change what a shell runs",
    "*": "it has a pattern for file names (*), so its words depend on which files are there",
    "?": "it has a pattern for file names (?), so its words depend on which files are there",
    "[": "it has a pattern for file names or a test ([), so its words depend on which files are there",
    "]": "it has a pattern for file names or a test (]), so its words depend on which files are there",
    "~": "it has a ~ that may stand for a home folder",
    "{": "it has braces, which group commands or make several words of one",
    "}": "it has braces, which group commands or make several words of one",
    "(": "it has parentheses, which start another shell or define a function",
    ")": "it has parentheses, which start another shell or define a function",
    "<": "it reads from a file or a text (<)",
    ">": "it writes to a file (>)",
    "&": "it leaves a command running in the background or joins its outputs (&)",
    "#": "it has a # inside of a word, or a comment that ends in a backslash",
    "'": "a single quote is not closed",
    '"': "a double quote is not closed",
    "\r": "it has a carriage return, which a shell takes for a part of a word",
}


class _Line(Struct):
    """State of a line that is being read."""

    commands: list[Argv] = msgspec.field(default_factory=list)
    tokens: list[str] = msgspec.field(default_factory=list)
    word: str | None = None
    join: str = "\n"
    groups: list[str] = msgspec.field(default_factory=list)
    """Closing sign of each open group."""
    is_closed: bool = False
    """Whether a group has just ended: only a join may follow."""


def split_line(text: str) -> tuple[Argv, ...] | UnclearCommandLine:
    """Return the commands of a line, or why they are not certain."""
    line = _Line()
    at = 0
    while at < len(text):
        if not line.is_closed and (piece := PIECE.match(text, at)):
            line.word = (line.word or "") + _meant(piece)
            at = piece.end()
        elif line.word is None and (comment := COMMENT.match(text, at)):
            at = comment.end()
        elif blank := BLANK.match(text, at):
            _end_word(line)
            at = blank.end()
        elif join := JOIN.match(text, at):
            _end_word(line)
            if problem := _end_command(line, join[0]):
                return UnclearCommandLine(reason=problem)
            at = join.end()
        elif sign := OPENS.match(text, at) or CLOSES.match(text, at):
            if problem := _grouped(line, sign[0]):
                return UnclearCommandLine(reason=problem)
            at = sign.end()
        elif line.is_closed:
            return UnclearCommandLine(reason=f"a group of commands is followed by {text[at]!r}")
        else:
            return UnclearCommandLine(reason=beyond(text, at))
    _end_word(line)
    return _ended(line)


def one_word(text: str) -> str | None:
    """Return what a single word means; None when it is not certain or more than one word."""
    meant: list[str] = []
    at = 0
    while piece := PIECE.match(text, at):
        meant.append(_meant(piece))
        at = piece.end()
    return "".join(meant) if at == len(text) and meant else None


def odd_character(text: str) -> str | None:
    """Return the first character that is not seen, or not as what it is; tabs and newlines are no such."""
    for char in dict.fromkeys(text):
        if char in "\n\t" or " " <= char <= "~":
            continue
        if char.isascii() or not char.isprintable() or UNSEEN.match(char):
            return char
        if unicodedata.category(char)[0] in "CZ":
            return char
    return None


def beyond(text: str, at: int) -> str:
    """Describe in a sentence why a line is not plain at a place."""
    char = text[at]
    if char == '"' and '"' in text[at + 1 :]:
        return _in_double_quotes(text[at + 1 : text.index('"', at + 1)])
    if char in BEYOND:
        return BEYOND[char]
    return f"it has the character {char!r} (U+{ord(char):04X}) outside of quotes"


def _in_double_quotes(inside: str) -> str:
    found = next((char for char in inside if char in "$`\\!"), '"')
    return BEYOND[found]


def _meant(piece: re.Match[str]) -> str:
    bare, single, double = piece.group("bare", "single", "double")
    return next(text for text in (bare, single, double) if text is not None)


def _end_word(line: _Line) -> None:
    if line.word is not None:
        line.tokens.append(line.word)
        line.word = None


def _end_command(line: _Line, join: str) -> str | None:
    if line.tokens:
        if problem := _problem_of_program(line.tokens[0]):
            return problem
        line.commands.append(tuple(line.tokens))
        line.tokens = []
    elif line.is_closed:
        line.is_closed = False
    elif line.join == NOT:
        return f"nothing follows {NOT!r}"
    elif join != "\n":
        return f"nothing stands before {join!r}"
    elif line.join in NEEDS_COMMAND:
        return None
    line.join = join
    return None


def _grouped(line: _Line, sign: str) -> str | None:
    """Open or close a group of commands, or turn an ending around; says why that cannot be done."""
    if sign in CLOSERS or sign == NOT:
        return _opened(line, sign)
    _end_word(line)
    if not line.groups or line.groups[-1] != sign or (sign == "}" and line.tokens):
        return BEYOND[sign]
    if line.tokens:
        if problem := _end_command(line, ";"):
            return problem
    elif not line.is_closed and line.join not in {";", "\n"}:
        return f"nothing stands before {sign!r}"
    if sign == "}" and line.is_closed:
        # Whether this is a bracket or a word depends on what stands before it.
        return BEYOND[sign]
    _ = line.groups.pop()
    line.is_closed = True
    return None


def _opened(line: _Line, sign: str) -> str | None:
    if line.tokens or line.word is not None or line.is_closed:
        return BEYOND[sign]
    if sign == NOT and line.join in {NOT, "|"}:
        return BEYOND[sign]
    if sign in CLOSERS:
        line.groups.append(CLOSERS[sign])
    line.join = sign
    return (
        f"it has more than {MOST_OPEN} groups in groups" if len(line.groups) > MOST_OPEN else None
    )


def _ended(line: _Line) -> tuple[Argv, ...] | UnclearCommandLine:
    if line.join in NEEDS_COMMAND and not (line.tokens or line.is_closed):
        return UnclearCommandLine(reason=f"nothing follows {line.join!r}")
    if line.groups:
        return UnclearCommandLine(reason=f"a group is not closed with {line.groups[-1]!r}")
    if problem := _end_command(line, "\n"):
        return UnclearCommandLine(reason=problem)
    if not line.commands:
        return UnclearCommandLine(reason="it runs nothing")
    return tuple(line.commands)


def _problem_of_program(word: str) -> str | None:
    """Return why a first word is no name of a program; None when it is one."""
    if not word:
        return "the name of a program is empty"
    if "=" in word:
        return "it sets a variable, which can change what a command does"
    if word in RESERVED:
        return f"{word!r} is a word of the shell's own language"
    if word[0] in "-+":
        # `bash -c "-x …"` takes the line itself for options.
        return f"{word!r} looks like an option where the name of a program should be"
    if word[0] == "%":
        return f"{word!r} names a job of the shell"
    return None
