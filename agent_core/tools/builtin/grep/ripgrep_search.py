"""Searches with ripgrep, which sees the disk; unsaved texts are given to it one by one."""

from collections.abc import Callable, Mapping, Sequence

from agent_core.kernel.errors import ToolError
from agent_core.kernel.values import Value
from agent_core.tools.builtin.grep.matches import GrepMatches
from agent_core.tools.builtin.grep.ripgrep_events import RipgrepEvent, RipgrepEventReader
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
