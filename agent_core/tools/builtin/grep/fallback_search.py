"""Searches without ripgrep: slower, through the port alone."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator

import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.kernel.errors import (
    FileTooLarge,
    ToolError,
    WorkspaceError,
    WorkspaceUnreachable,
)
from agent_core.kernel.values import Value
from agent_core.tools.builtin.grep.ripgrep import GrepLine, GrepMatches, GrepQuery, RipgrepTarget
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, walk
from agent_core.workspace import FileBytes, FileText

FILE_LIMIT_BYTES = 16_777_216
LINE_TIME_S = 0.5
"""A pattern that takes longer for a line never comes to an end."""
KEPT_CHARS = 4_096
"""Of a matching line no more is kept than its beginning, which is more than is shown."""

Matches = Callable[[str, float], bool]
"""Whether a line matches, found out within so many seconds; else TimeoutError."""


class GrepProgress(Struct):
    """How a search stands."""

    too_large: int = 0
    """Files that were not searched for that reason."""
    withheld: set[str] = msgspec.field(default_factory=set[str])
    """Files that were not searched because they are secret."""
    is_over: bool = False
    """Whether the search is over: no caller waits for its results any more."""


class _Search(Value, frozen=True, kw_only=True):
    query: GrepQuery
    matches: Matches
    found: GrepMatches
    progress: GrepProgress


async def search_without_ripgrep(
    query: GrepQuery, place: RipgrepTarget, found: GrepMatches, *, withheld: Callable[[str], bool]
) -> GrepProgress:
    """Search files and unsaved texts, but for those of which `withheld` is true.

    Raises:
        ToolError: The pattern is not valid, or takes too long.
    """
    matches = await to_thread.run_sync(_compiled, query, abandon_on_cancel=True)
    progress = GrepProgress()
    looking = _Search(query=query, matches=matches, found=found, progress=progress)
    try:
        async for path in _paths(place):
            if withheld(path):
                progress.withheld.add(path)
                continue
            if found.is_full:
                continue
            unsaved = place.unsaved.get(path)
            content = unsaved.text if unsaved else await _content(place.tree, path, progress)
            if not content:
                continue
            await to_thread.run_sync(_look_through, looking, path, content, abandon_on_cancel=True)
    finally:
        progress.is_over = True
    return progress


async def _paths(place: RipgrepTarget) -> AsyncGenerator[str]:
    if place.file is not None:
        yield place.file
        return
    seen: set[str] = set()
    async for path in walk(place.tree):
        if path in place.unsaved:
            seen.add(path)
        yield path
    for path in sorted(place.unsaved.keys() - seen):
        yield path


async def _content(tree: SearchedFolder, path: str, progress: GrepProgress) -> str:
    """Read a text; empty when it is none, or cannot be read."""
    try:
        file = await tree.files.read(tree.folder / path, limit_bytes=FILE_LIMIT_BYTES)
    except FileTooLarge:
        progress.too_large += 1
        return ""
    except WorkspaceUnreachable:
        raise
    except WorkspaceError:
        return ""
    return file.text if isinstance(file, FileText) else _odd_text(file)


def _odd_text(file: FileBytes) -> str:
    """Read a text in an unknown encoding; a NUL shows that it is none."""
    return "" if b"\0" in file.data else file.data.decode("utf-8", "replace")


def _compiled(query: GrepQuery) -> Matches:
    # It takes a while, and is not needed where there is ripgrep.
    import regex  # noqa: PLC0415 - see above

    flags = regex.VERSION1 | (regex.IGNORECASE if query.ignore_case else 0)
    pattern = regex.escape(query.pattern) if query.literal else query.pattern
    try:
        compiled = regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        message = f"The pattern {query.pattern!r} is not a valid regular expression: {error}\nEscape special characters with a backslash, or set literal to true to search for the text as it is."
        raise ToolError(message) from error

    def matches(line: str, timeout_s: float) -> bool:
        # Other threads go on meanwhile, and after the time it gives up.
        return compiled.search(line, timeout=timeout_s, concurrent=True) is not None

    return matches


def _look_through(search: _Search, path: str, text: str) -> None:
    """Look through the lines of one text. Blocking, until nobody waits any more at the latest."""
    found, context = search.found, search.query.context
    found.begin()
    before: deque[GrepLine] = deque(maxlen=context)
    after = 0
    for number, whole in enumerate(_lines(text), start=1):
        if found.is_full or search.progress.is_over:
            return
        line = whole.removesuffix("\r")
        fits = _fits(search, path, line, number)
        shown = GrepLine(
            "match" if fits else "context", number, line[:KEPT_CHARS], len(line) > KEPT_CHARS
        )
        if fits:
            for one in before:
                found.add(path, one)
            before.clear()
            found.add(path, shown)
            after = context
        elif after:
            after -= 1
            found.add(path, shown)
        else:
            before.append(shown)
    found.begin()


def _fits(search: _Search, path: str, line: str, number: int) -> bool:
    try:
        return search.matches(line, LINE_TIME_S)
    except TimeoutError as error:
        message = f"The pattern {search.query.pattern!r} takes too long in line {number} of {path}: write it without repetitions inside of repetitions, or set literal to true"
        raise ToolError(message) from error


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        yield text[start:stop]
        start = stop + 1
