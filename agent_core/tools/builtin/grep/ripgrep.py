"""Runs ripgrep for `grep` and reads its events into matches."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import as_object, decode
from agent_core.kernel.text import DEFAULT_MAX_CHARS, LINE_SUFFIX
from agent_core.kernel.values import Value
from agent_core.tools.builtin.search.ripgrep import (
    HERE,
    INPUT,
    RipgrepRefused,
    RipgrepRun,
    RipgrepUnusable,
    ripgrep,
)
from agent_core.tools.builtin.search.tree_walk import SearchedFolder
from agent_core.tools.port import ToolContext
from agent_core.workspace import FileText

ENOUGH_CHARS = 4_194_304
"""More is not collected, whatever the limit: a small part of it is shown."""


class GrepLine(Value, frozen=True):
    """A line of a file."""

    kind: Literal["match", "context"]
    number: int
    text: str
    """Its beginning at least, without the end of the line."""
    is_cut: bool = False
    """There is more of it."""


class _File(Struct, kw_only=True):
    lines: list[str] = msgspec.field(default_factory=list[str])
    matches: int = 0
    chars: int = 0
    has_cut_lines: bool = False


class GrepMatches:
    """Lines found so far: matches and their context."""

    def __init__(self, *, limit: int, context: int) -> None:
        """Begin with nothing.

        Args:
            limit: How many matches are wanted.
            context: How many lines are wanted around each.
        """
        self._limit = limit
        self._context = context
        self._files: dict[str, _File] = {}
        self._waiting: list[GrepLine] = []
        """Context that belongs to the next match, if that is still wanted."""
        self._last = 0
        """The last line of the current file that is wanted as context of the match before it; 0: none is."""
        self.matches = 0
        self.limit_reached = False
        """There is at least one more match."""
        self._chars = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.is_overfull or (self.limit_reached and not self._last)

    @property
    def is_overfull(self) -> bool:
        """Whether it is full for another reason than the limit."""
        return self._chars > ENOUGH_CHARS

    def begin(self) -> None:
        """Report that the next lines come from another file."""
        self._waiting.clear()
        self._last = 0

    def add(self, path: str, line: GrepLine) -> None:
        """Add a line of the current file."""
        if self.is_full:
            return
        if line.kind == "match" and self.matches == self._limit:
            self.limit_reached = True
        if line.number <= self._last and (line.kind == "context" or self.limit_reached):
            self._keep(path, replace(line, kind="context"))
        elif self.limit_reached:
            self.begin()
        elif line.kind == "context":
            self._waiting.append(line)
        else:
            self._take(path, line)

    def drop(self, path: str) -> None:
        """Forget a file: it turned out to be no text."""
        gone = self._files.pop(path, None)
        if gone is not None:
            self.matches -= gone.matches
            self._chars -= gone.chars

    @property
    def file_count(self) -> int:
        """How many files have matches."""
        return len(self._files)

    @property
    def has_cut_lines(self) -> bool:
        """Whether some lines are not shown whole."""
        return any(file.has_cut_lines for file in self._files.values())

    def text(self) -> str:
        """Write out all lines, by path."""
        return "\n".join(line for path in sorted(self._files) for line in self._files[path].lines)

    def _take(self, path: str, line: GrepLine) -> None:
        """Keep a match, with the context that was waiting for it."""
        for before in self._waiting:
            self._keep(path, before)
        self._waiting.clear()
        self._keep(path, line)
        self._last = line.number + self._context
        self.matches += 1
        self._files[path].matches += 1

    def _keep(self, path: str, line: GrepLine) -> None:
        file = self._files.setdefault(path, _File())
        text = line.text
        if line.is_cut or len(text) > DEFAULT_MAX_CHARS:
            text = text[:DEFAULT_MAX_CHARS] + LINE_SUFFIX
            file.has_cut_lines = True
        written = (
            f"{path}:{line.number}: {text}"
            if line.kind == "match"
            else f"{path}-{line.number}- {text}"
        )
        file.lines.append(written)
        file.chars += len(written)
        self._chars += len(written)


LONG_BYTES = 65_536
"""Of a longer line only the head is kept, and its number."""
HEAD_BYTES = 32_768
TAIL_BYTES = 64
SAID_BYTES = 4_096
LINE_NUMBER = re.compile(rb'\},"line_number":(\d+),')
"""Quotes inside a text have a backslash before them, so this can be nothing else."""
KIND = re.compile(rb'\{"type":"(match|context|begin|end)"')
TEXT = re.compile(rb'"lines":\{"(text|bytes)":"')
PATH = re.compile(
    rb'\{"type":"\w+","data":\{"path":(\{"(?:text|bytes)":"[^"\\]*(?:\\.[^"\\]*)*"\})'
)
STRING = re.compile(rb'([^"\\]*(?:\\.[^"\\]*)*)"')
ESCAPE_BYTES = 12
"""A character takes no more in JSON."""


class RipgrepEvent(Value, frozen=True):
    """Something ripgrep reports."""

    kind: Literal["begin", "line", "end", "binary"]
    """`binary`: an end, and the file is no text after all."""
    path: str
    line: GrepLine | None = None


class RipgrepEventReader:
    """Makes events of chunks of output."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        self._rest = b""
        self._is_long = False
        """The rest is the head of a line that is too long to keep."""
        self._tail = b""
        self._number: int | None = None
        self._said = bytearray()

    @property
    def said(self) -> str:
        """Text in ripgrep's output that is not an event: an error message."""
        return self._said.decode("utf-8", "replace")

    def feed(self, data: bytes) -> Iterator[RipgrepEvent]:
        """Parse a chunk, and yield the events that it completes."""
        if self._is_long:
            end = data.find(b"\n")
            self._skip(data if end < 0 else data[: end + 1])
            if end < 0:
                return
            data = data[end + 1 :]
            event = _long_event(self._rest, self._number)
            self._rest, self._is_long = b"", False
            if event:
                yield event
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = self._event(line)
            if event:
                yield event
        if len(self._rest) > LONG_BYTES:
            rest, self._rest = self._rest, self._rest[:HEAD_BYTES]
            self._is_long, self._tail, self._number = True, b"", None
            self._skip(rest)

    def close(self) -> None:
        """Report that nothing more comes."""
        if self._rest and not self._is_long:
            _ = self._event(self._rest)

    def _skip(self, data: bytes) -> None:
        window = self._tail + data
        found = LINE_NUMBER.search(window)
        if found and self._number is None:
            self._number = int(found[1])
        self._tail = window[-TAIL_BYTES:]

    def _event(self, line: bytes) -> RipgrepEvent | None:
        kind = KIND.match(line)
        if kind is None:
            if not line.startswith(b'{"') and len(self._said) < SAID_BYTES:
                self._said += line[:SAID_BYTES] + b"\n"
            return None
        if len(line) > LONG_BYTES:
            number = LINE_NUMBER.search(line)
            return _long_event(line[:HEAD_BYTES], int(number[1]) if number else None)
        data = as_object(as_object(decode(line)).get("data"))
        path = _text(data.get("path"))
        if kind[1] == b"begin":
            return RipgrepEvent("begin", path)
        if kind[1] == b"end":
            return RipgrepEvent("end" if data.get("binary_offset") is None else "binary", path)
        number_said = data.get("line_number")
        return _line_event(
            kind[1],
            path,
            _text(data.get("lines")),
            number_said if isinstance(number_said, int) else 0,
        )


def _line_event(
    kind: bytes, path: str, text: str, number: int, *, is_cut: bool = False
) -> RipgrepEvent:
    text = text.removesuffix("\n").removesuffix("\r")
    line = GrepLine("match" if kind == b"match" else "context", number, text, is_cut)
    return RipgrepEvent("line", path, line)


def _long_event(head: bytes, number: int | None) -> RipgrepEvent | None:
    """Read the beginning of a line that is too long."""
    kind, path, text = KIND.match(head), PATH.match(head), TEXT.search(head)
    if kind is None or path is None or text is None or number is None:
        return None
    begun = head[text.end() :]
    whole = STRING.match(begun)
    if whole:
        begun = whole[1]  # what is long is the list of places in it
    shown = _begun_base64(begun) if text[1] == b"bytes" else _begun_string(begun)
    where = _text(as_object(decode(path[1])))
    return _line_event(kind[1], where, shown, number, is_cut=whole is None)


def _begun_string(begun: bytes) -> str:
    """Read what is there of a JSON string."""
    whole = begun.decode("utf-8", "ignore")
    for cut in range(ESCAPE_BYTES):
        try:
            value = decode(f'"{whole[: len(whole) - cut]}"')
        except ValueError:
            continue
        return value if isinstance(value, str) else ""
    return ""


def _begun_base64(begun: bytes) -> str:
    return base64.b64decode(begun[: len(begun) // 4 * 4]).decode("utf-8", "replace")


def _text(value: JsonValue) -> str:
    """Read what ripgrep writes as text when it is UTF-8, else as bytes."""
    if not isinstance(value, Mapping):
        return ""
    text, data = value.get("text"), value.get("bytes")
    if isinstance(text, str):
        return text
    try:
        return base64.b64decode(data).decode("utf-8", "replace") if isinstance(data, str) else ""
    except binascii.Error:
        return ""


SPEAKS = (
    "rg: regex",
    "rg: the literal",
    "rg: error parsing glob",
    "rg: compiled regex",
    "rg: pattern",
)
"""How it begins to say what is wrong with a pattern."""


class GrepQuery(Value, frozen=True, kw_only=True):
    """Query of a text search."""

    pattern: str
    glob: str | None
    ignore_case: bool
    literal: bool
    context: int
    limit: int


class RipgrepTarget(Value, frozen=True, kw_only=True):
    """Where it is searched for."""

    tree: SearchedFolder
    file: str | None
    """The only file, in the folder; None: all."""
    unsaved: Mapping[str, FileText]
    """Texts that are searched instead of what the disk has, by path relative to the folder."""


async def search_with_ripgrep(
    query: GrepQuery,
    place: RipgrepTarget,
    found: GrepMatches,
    context: ToolContext,
    *,
    withheld: Callable[[str], bool],
) -> None:
    """Search files and unsaved texts, but for those of which `withheld` is true.

    Raises:
        RipgrepUnusable: It cannot be used here; nothing was found yet.
        ToolError: The pattern or the glob is not valid.
    """
    if place.file is None or place.file not in place.unsaved:
        globs = () if query.glob is None or place.file else (f"--glob={query.glob}",)
        target = f"{HERE}{place.file or ''}"
        async with ripgrep(
            (*_flags(query), *globs),
            context,
            place.tree,
            target=target,
        ) as run:
            await _collect(
                query, run, found, skips=lambda path: path in place.unsaved or withheld(path)
            )
    for path in sorted(place.unsaved):
        if found.is_full:
            return
        if withheld(path):
            continue
        data = place.unsaved[path].text.encode("utf-8", "replace")
        async with ripgrep(_flags(query), context, place.tree, target=INPUT, stdin=data) as run:
            await _collect(query, run, found, named=path)


def _flags(query: GrepQuery) -> Sequence[str]:
    return (
        "--json",
        "--line-number",
        "--crlf",  # else `$` matches nothing in files with CRLF
        *(("--ignore-case",) if query.ignore_case else ()),
        *(("--fixed-strings",) if query.literal else ()),
        *((f"--context={query.context}",) if query.context else ()),
        # It keeps what it finds in a file until it is through with the file.
        f"--max-count={query.limit + 1}",
        f"--regexp={query.pattern}",
    )


async def _collect(
    query: GrepQuery,
    run: RipgrepRun,
    found: GrepMatches,
    *,
    skips: Callable[[str], bool] = lambda _: False,
    named: str | None = None,
) -> None:
    """Read what it reports until nothing more is wanted."""
    reader = RipgrepEventReader()
    while data := await run.read():
        for event in reader.feed(data):
            path = named or event.path.removeprefix(HERE)
            if skips(path):
                continue
            _note(found, event, path)
        if found.is_full:
            return
    reader.close()
    try:
        await run.check(reader.said)
    except RipgrepRefused as refused:
        raise _refusal(query, str(refused)) from refused


def _note(found: GrepMatches, event: RipgrepEvent, path: str) -> None:
    match event.kind:
        case "begin" | "end":
            found.begin()
        case "binary":
            found.begin()
            found.drop(path)
        case "line":
            if event.line:
                found.add(path, event.line)


def _refusal(query: GrepQuery, said: str) -> Exception:
    if not said.startswith(SPEAKS):
        return RipgrepUnusable(
            said
        )  # another program of that name, or one that knows other options
    said = said.removeprefix("rg: ")
    if "glob" in said.partition("\n")[0]:
        return ToolError(f"The glob {query.glob!r} is not valid: {said}")
    if query.literal:
        return ToolError(f"The search failed: {said}")
    return ToolError(
        f"The pattern {query.pattern!r} is not a valid regular expression: {said}\nEscape special characters with a backslash, or set literal to true to search for the text as it is."
    )
