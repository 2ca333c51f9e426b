"""The work of the tool `grep`: with ripgrep, or without it where it cannot be used."""

from collections.abc import Sequence
from pathlib import Path

from agent_core.kernel import JsonValue
from agent_core.kernel.json import scrub
from agent_core.kernel.text import DEFAULT_MAX_CHARS, format_size, truncate_head
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.builtin.grep.ripgrep import (
    GrepMatches,
    GrepQuery,
    RipgrepTarget,
    search_with_ripgrep,
)
from agent_core.tools.builtin.search.common import cut_facts, notices, place_of_search
from agent_core.tools.builtin.search.globs import file_glob
from agent_core.tools.builtin.search.ripgrep import RipgrepUnusable
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed_buffers, searched
from agent_core.tools.builtin.search.withheld import WithheldFiles, withheld_note
from agent_core.tools.port import ToolContext, ToolResult, text_result

NOTHING = "No matches found"


async def search(query: GrepQuery, asked: str | None, context: ToolContext) -> ToolResult:
    """Search a file or a folder (None: the workspace) and return the matching lines.

    Raises:
        ToolError: There is no such place, or the glob can fit nothing.
    """
    from agent_core.tools.builtin.grep.fallback_search import search_without_ripgrep  # noqa: PLC0415 - at first use

    path, kind = await place_of_search(asked, context)
    is_file = kind == "file"
    folder = path.parent if is_file else path
    if query.glob:
        _ = file_glob(query.glob.removeprefix("!"))  # explains what can fit nothing
    tree = await searched(context.workspace, folder, glob=query.glob)
    withheld = WithheldFiles(tree, context)
    place = await _file_place(path, tree) if is_file else await _folder_place(tree)
    found = GrepMatches(limit=query.limit, context=query.context)
    details: dict[str, JsonValue] = {"pattern": query.pattern, "path": str(path)}
    if is_file and withheld.holds(path.name):
        return _result(query, found, (path.name,), details)
    try:
        left_out = await _with_ripgrep(query, place, found, context, withheld)
        details["engine"] = "ripgrep"
    except RipgrepUnusable:
        found = GrepMatches(limit=query.limit, context=query.context)
        progress = await search_without_ripgrep(query, place, found, withheld=withheld.holds)
        left_out = tuple(sorted(progress.withheld))
        details["engine"] = "builtin"
        if progress.too_large:
            details["too_large_count"] = progress.too_large
    left_out = tuple(sorted({*left_out, *filter(withheld.holds, place.unsaved)}))
    return await run_in_thread(_result, query, found, left_out, details)


async def _with_ripgrep(
    query: GrepQuery,
    place: RipgrepTarget,
    found: GrepMatches,
    context: ToolContext,
    withheld: WithheldFiles,
) -> tuple[str, ...]:
    """Search, and return the secret files that were left out; raises as `search_with_ripgrep`."""
    if place.file is not None:
        await search_with_ripgrep(query, place, found, context, withheld=withheld.holds)
        return ()
    async with withheld.listing() as listing:
        await search_with_ripgrep(query, place, found, context, withheld=withheld.holds)
        return await withheld.listed(listing)


async def _file_place(path: Path, tree: SearchedFolder) -> RipgrepTarget:
    unsaved = {text.path.name: text for text in await tree.files.buffers(path)}
    return RipgrepTarget(tree=tree, file=path.name, unsaved=unsaved)


async def _folder_place(tree: SearchedFolder) -> RipgrepTarget:
    return RipgrepTarget(tree=tree, file=None, unsaved=await listed_buffers(tree))


def _result(
    query: GrepQuery, found: GrepMatches, withheld: Sequence[str], details: dict[str, JsonValue]
) -> ToolResult:
    text = scrub(found.text())
    page = truncate_head(text, max_lines=len(text) + 1)
    lines_cut = found.has_cut_lines
    is_cut = page.truncated or found.is_overfull
    details |= {
        "file_count": found.file_count,
        "match_count": found.matches,
        "limit_reached": found.limit_reached,
        "lines_truncated": lines_cut,
        "truncated": found.limit_reached or is_cut,
    }
    if page.truncated:
        details["truncation"] = cut_facts(page)
    if withheld:
        details["withheld"] = list(withheld)
    note = withheld_note(withheld)
    if not text:
        return text_result(NOTHING + notices(note), details=details)
    said = notices(
        f"{query.limit} matches limit reached. Use limit={query.limit * 2} for more, or refine pattern"
        if found.limit_reached
        else "",
        f"{format_size(page.max_bytes)} limit reached" if is_cut else "",
        f"Some lines truncated to {DEFAULT_MAX_CHARS} chars. Use read tool to see full lines"
        if lines_cut
        else "",
        note,
    )
    return text_result(page.content + said, details=details)
