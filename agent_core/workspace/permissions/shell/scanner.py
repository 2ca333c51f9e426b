"""Finds the commands in any text that a shell might take, in one pass, without ever giving up.

It guesses where a strict reader would stop, so what it finds may only be used against a command. The grammar is not
asked here: it takes a minute for some texts of 128 KiB, and this takes a tenth of a second for any.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.workspace.permissions.shell.command_variants import ways_to_read
from agent_core.workspace.permissions.shell.values import Argv

RUN: Final = re.compile(r"[^\s\\'\"$`(){}|&;<>#]+")
QUOTED_RUN: Final = re.compile(r"[^\\\"$`]+")
BLANKS: Final = re.compile(r"[ \t\r]+")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
BRACED: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+)\}")
DEFAULT: Final = re.compile(r"\{[!#]?([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])?(:?[-=+?]|[^\s}|])?")
ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
ANSI_TEXT: Final = re.compile(r"'((?:[^'\\]|\\.)*)'?", re.DOTALL)
HERE: Final = re.compile(r"<<(?!<)(-?)[ \t]*(\\?)(['\"]?)([^\s'\"|&;<>()]+)\3")
REDIRECTION: Final = re.compile(r"<<<|&>>?|[<>]&|>>|<>|>\||[<>]")
MOST_OPEN: Final = 1000
"""Brackets in brackets; a line that has more is also read word by word."""
LONGEST_VALUE: Final = 1024
MOST_GIVEN: Final = 65_536
"""Characters that variables and `echo` give; a few of them could name each other and grow without end."""
PRINTERS: Final = frozenset({"echo", "printf"})

LETTERS: Final[Mapping[str, str]] = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
ANSI: Final = re.compile(
    r"""\\(?:
        x(?P<hex>[0-9a-fA-F]{1,2}) | u(?P<short>[0-9a-fA-F]{1,4}) | U(?P<long>[0-9a-fA-F]{1,8})
        | (?P<octal>[0-7]{1,3}) | c(?P<control>.) | (?P<other>.)
    )""",
    re.DOTALL | re.VERBOSE,
)
IN_BACKTICKS: Final = re.compile(r"\\([\\`$])")
HIGHEST: Final = 0x10FFFF


class ScannedCommands(Struct):
    """Commands and further texts found in a text."""

    commands: list[Argv] = msgspec.field(default_factory=list)
    fed: list[str] = msgspec.field(default_factory=list)
    """Texts that are handed to a command: here-documents and here-strings."""
    inner: list[str] = msgspec.field(default_factory=list)
    """Texts that are lines of their own: between backticks, and what a here-document has expanded."""
    is_whole: bool = True
    """Whether every bracket and quote is closed."""


class _Frame(Struct):
    """One open bracket or quote, with what was read since."""

    closer: str
    tokens: list[str] = msgspec.field(default_factory=list)
    word: list[str] | None = None
    """The parts of a word, so that adding one does not copy the others."""
    skips: str | None = None
    """The redirection that the next word belongs to."""
    since: int = 0
    """How many commands had been found when it opened."""
    cases: int = 0
    """How many `case` are open: there a `)` ends a pattern."""


def scan(text: str) -> ScannedCommands:
    """Find everything that may be a command."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.found


class _Scanner:
    """Walks over a text with a stack of open brackets; the stack is as deep as the text says, nothing recurses."""

    def __init__(self, text: str) -> None:
        self.found = ScannedCommands()
        self._text = text
        self._at = 0
        self._frames = [_Frame(closer="")]
        self._values: dict[str, str] = {}
        self._here: list[tuple[str, bool, bool]] = []
        self._given = 0
        self._is_torn = False

    def run(self) -> None:
        """Read to the end of the text, and close the groups that are still open."""
        while self._at < len(self._text):
            if self._frames[-1].closer == '"':
                self._in_quotes()
            else:
                self._in_code()
        self.found.is_whole = len(self._frames) == 1 and not self._is_torn
        while self._frames:
            self._end_command()
            self._frames.pop()

    def _in_quotes(self) -> None:
        char = self._text[self._at]
        if run := QUOTED_RUN.match(self._text, self._at):
            self._add(run[0])
            self._at = run.end()
        elif char == '"':
            self._at += 1
            self._close()
        elif char == "\\":
            after = self._text[self._at + 1 : self._at + 2]
            self._add("" if after == "\n" else after if after in '$`"\\' else char + after)
            self._at += 2
        else:
            self._expansion()

    def _in_code(self) -> None:
        char = self._text[self._at]
        if run := RUN.match(self._text, self._at):
            self._add(run[0])
            self._at = run.end()
        elif blanks := BLANKS.match(self._text, self._at):
            self._end_word()
            self._at = blanks.end()
        elif char in "\"'\\$`":
            self._quote_or_expansion(char)
        elif char == "#":
            self._comment_or_word()
        elif char in "<>" or self._text.startswith("&>", self._at):
            self._redirection()
        else:
            self._bracket_or_join(char)

    def _quote_or_expansion(self, char: str) -> None:
        if char == "'":
            end = self._text.find("'", self._at + 1)
            self._is_torn |= end < 0
            end = len(self._text) if end < 0 else end
            self._add(self._text[self._at + 1 : end])
            self._at = end + 1
        elif char == '"':
            self._open('"', 1)
        elif char == "\\":
            after = self._text[self._at + 1 : self._at + 2]
            if after != "\n":
                self._add(after)
            self._at += 2
        else:
            self._expansion()

    def _expansion(self) -> None:
        """Read what begins with `$` or a backtick."""
        text, at = self._text, self._at
        if text[at] == "`":
            end = _end_of_backticks(text, at + 1)
            self._is_torn |= end == len(text)
            self.found.inner.append(unescaped(text[at + 1 : end]))
            self._at = end + 1
        elif text.startswith("$(", at):
            self._open(")", 2)
        elif text.startswith(("${ ", "${\n", "${|"), at):
            self._open("}", 3)
        elif (ansi := ANSI_TEXT.match(text, at + 1)) and self._frames[-1].closer != '"':
            self._add(decoded(ansi[1]))
            self._at = ansi.end()
        elif simple := BRACED.match(text, at + 1) or NAME.match(text, at + 1):
            self._put_value(simple[1] if simple.re is BRACED else simple[0])
            self._at = simple.end()
        elif braced := DEFAULT.match(text, at + 1):
            # What stands behind `:-` is read as a part of the word: it is what an empty variable gives.
            self._open("}", braced.end() - at)
        else:
            self._at += 1

    def _put_value(self, name: str) -> None:
        value = self._gives(self._values.get(name, ""))
        if self._frames[-1].closer == '"':
            self._add(value)
            return
        first, *others = value.split() or [""]
        self._add(first)
        for other in others:
            self._end_word()
            self._add(other)

    def _comment_or_word(self) -> None:
        if self._frames[-1].word is not None:
            self._add("#")
            self._at += 1
            return
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _redirection(self) -> None:
        frame = self._frames[-1]
        if self._text.startswith(("<(", ">("), self._at):
            self._open(")", 2)
            return
        if frame.word is not None and "".join(frame.word).isdigit():
            frame.word = None
        self._end_word()
        if here := HERE.match(self._text, self._at):
            self._here.append((here[4], bool(here[1]), not (here[2] or here[3])))
            self._at = here.end()
            return
        sign = REDIRECTION.match(self._text, self._at)
        frame.skips = sign[0] if sign else ">"
        self._at = sign.end() if sign else self._at + 1

    def _bracket_or_join(self, char: str) -> None:
        frame = self._frames[-1]
        self._at += 1
        if char == frame.closer and not self._ends_pattern(char):
            self._close()
        elif char == "(":
            self._end_command()
            self._open(")", 0)
        elif char in "{}":
            self._brace(char)
        elif char == "\n":
            self._end_command()
            self._here_documents()
        elif char.isspace():
            self._end_word()
        else:
            self._end_command()

    def _ends_pattern(self, char: str) -> bool:
        frame = self._frames[-1]
        if char != ")" or [*frame.tokens[:1], "".join(frame.word or ())][0] == "esac":
            return False
        return frame.cases > 0 or frame.tokens[:1] == ["case"]

    def _brace(self, char: str) -> None:
        """Parse a brace: a bracket when it stands alone where a command may begin, otherwise a letter."""
        frame = self._frames[-1]
        alone = frame.word is None and self._text[self._at : self._at + 1].strip() == ""
        if not alone:
            self._add(char)
        elif not frame.tokens or (char == "{" and frame.tokens[0] in {"coproc", "function"}):
            self._end_command()
        else:
            self._add(char)
            self._end_word()

    def _here_documents(self) -> None:
        """Read the bodies of the here-documents that the line before has announced."""
        for name, dashed, expands in self._here:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if dashed else line) == name:
                    break
                lines.append(line)
            body = "\n".join(lines)
            self.found.fed.append(body)
            if expands:
                self.found.inner.append(f': "{body.replace(chr(34), "")}"')
        self._here.clear()

    def _open(self, closer: str, length: int) -> None:
        self._at += length
        frame = self._frames[-1]
        if closer == '"':
            frame.word = frame.word or [""]
        if len(self._frames) < MOST_OPEN:
            self._frames.append(_Frame(closer=closer, since=len(self.found.commands)))
            return
        self._is_torn = True
        self._end_command()

    def _close(self) -> None:
        """End a quote or bracket; its value continues the word around it."""
        frame = self._frames[-1]
        if frame.closer == '"':
            self._frames.pop()
            self._add("".join(frame.word or ()))
            return
        if frame.closer == "}":
            self._end_word()
            self._frames.pop()
            self._add(" ".join(frame.tokens))
            return
        self._end_command()
        self._frames.pop()
        if len(self.found.commands) == frame.since + 1:
            program, *printed = self.found.commands[-1]
            self._add(self._gives(" ".join(printed)) if program in PRINTERS else "")

    def _gives(self, text: str) -> str:
        self._given += len(text)
        return text if self._given <= MOST_GIVEN else ""

    def _add(self, text: str) -> None:
        frame = self._frames[-1]
        if frame.word is None:
            frame.word = []
        frame.word.append(text)

    def _end_word(self) -> None:
        frame = self._frames[-1]
        if frame.word is None:
            return
        word, frame.word = "".join(frame.word), None
        skips, frame.skips = frame.skips, None
        if skips is None:
            frame.tokens.append(word)
        elif skips == "<<<":
            self.found.fed.append(word)

    def _end_command(self) -> None:
        self._end_word()
        frame = self._frames[-1]
        tokens, frame.tokens, frame.skips = frame.tokens, [], None
        if not tokens:
            return
        if tokens[:1] in (["case"], ["esac"]):
            frame.cases = max(0, frame.cases + (1 if tokens[0] == "case" else -1))
        for argv in ways_to_read(tokens):
            self.found.commands.append(argv)
        for word in tokens:
            if assignment := ASSIGNMENT.fullmatch(word):
                self._values[assignment[1]] = assignment[2][:LONGEST_VALUE]


def decoded(text: str) -> str:
    r"""Return what stands in `$'…'`, with `\x72` and the like as their characters."""
    return ANSI.sub(_character, text)


def unescaped(text: str) -> str:
    """Return the line that stands between two backticks."""
    return IN_BACKTICKS.sub(r"\1", text)


def _end_of_backticks(text: str, start: int) -> int:
    """Return where the backtick stands that closes the one before `start`; the end of the text without one."""
    at = start
    while at < len(text) and text[at] != "`":
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _character(found: re.Match[str]) -> str:
    for group, base in (("hex", 16), ("short", 16), ("long", 16), ("octal", 8)):
        if digits := found[group]:
            number = int(digits, base)
            return chr(number) if number <= HIGHEST else ""
    if control := found["control"]:
        return chr(ord(control) & 0x1F)
    other = found["other"]
    return LETTERS.get(other, other)
