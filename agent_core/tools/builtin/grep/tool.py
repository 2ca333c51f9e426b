"""The tool `grep`: lines of files that match a pattern, also of what editors hold unsaved."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import scrub
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CHARS,
    format_size,
    truncate_head,
)
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.grep.ripgrep import (
    GrepMatches,
    GrepQuery,
    RipgrepTarget,
    search_with_ripgrep,
)
from agent_core.tools.builtin.search.common import (
    ADVICE,
    PATH_NAMES,
    NonNegativeCount,
    SearchLimit,
    WithheldFiles,
    cut_facts,
    folder_said,
    notices,
    pattern_said,
    place_of_search,
    withheld_note,
)
from agent_core.tools.builtin.search.globs import file_glob
from agent_core.tools.builtin.search.ripgrep import RipgrepUnusable
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed_buffers, searched
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result

DEFAULT_LIMIT = 100
MAX_CONTEXT = 1_000
MAX_PATTERN_CHARS = 10_000
NOTHING = "No matches found"


class GrepArguments(ToolArguments):
    """Arguments of `grep`."""

    other_names: ClassVar[Mapping[str, str]] = {
        **PATH_NAMES,
        "ignore_case": "ignoreCase",
        "case_insensitive": "ignoreCase",
        "-i": "ignoreCase",
        "query": "pattern",
        "regex": "pattern",
        "include": "glob",
        "-C": "context",
        "head_limit": "limit",
        "max_results": "limit",
    }

    pattern: str = Field(
        description="What to search for, a regular expression or, with literal, a text"
    )
    path: str | None = Field(
        default=None, description="The folder or file to search (default: the workspace)"
    )
    glob: str | None = Field(
        default=None,
        description='Only files of this glob, such as "*.ts" or "src/**/*.py"; "!*.md" leaves files out',
    )
    ignore_case: bool = Field(
        default=False, alias="ignoreCase", description="Take upper and lower case for the same"
    )
    literal: bool = Field(
        default=False, description="Search for the pattern as it is, not as a regular expression"
    )
    context: NonNegativeCount = Field(
        default=0, description="How many lines to show around each match (default: 0)"
    )
    limit: SearchLimit = Field(
        default=DEFAULT_LIMIT,
        description=f"How many matches to give at most (default: {DEFAULT_LIMIT})",
    )

    @field_validator("pattern")
    @classmethod
    def _one_line(cls, pattern: str) -> str:
        if not pattern:
            message = "The pattern is empty: every line would match. Use read to see a file"
            raise ValueError(message)
        if "\n" in pattern or "\r" in pattern:
            message = "The pattern has more than one line, and lines are searched one by one: search for one of them, and use context to see those around it"
            raise ValueError(message)
        if len(pattern) > MAX_PATTERN_CHARS:
            message = f"The pattern has {len(pattern)} characters, more than {MAX_PATTERN_CHARS}: search for a shorter piece of it"
            raise ValueError(message)
        if "\0" in pattern:
            message = "The pattern has a NUL, which no text has: leave it out"
            raise ValueError(message)
        return pattern


def grep_tool() -> ModelTool[GrepArguments]:
    """Make the tool."""
    size = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="grep",
            description=f"Search the contents of files for a regular expression. Gives matching lines as path:line: text, at most {DEFAULT_LIMIT} matches or {size}, whichever comes first; long lines are cut to {DEFAULT_MAX_CHARS} characters. Honours .gitignore, looks into hidden files, leaves binary files and .git out, follows no links. Secret files (.env, keys) are searched only after the user let you read them. Unsaved changes in the editor are seen.",
            parameters=schema_of(GrepArguments),
            kind="read",
            parallel_safe=True,
            snippet="Search file contents for a pattern",
            guidelines=(ADVICE,),
        ),
        arguments=GrepArguments,
        titled=_title,
        execute=_grep,
    )


def _title(arguments: JsonObject) -> str:
    glob = arguments.get("glob")
    only = f" ({glob})" if isinstance(glob, str) and glob else ""
    return f"grep /{pattern_said(arguments)}/ in {folder_said(arguments)}{only}"


async def _grep(arguments: GrepArguments, context: ToolContext) -> ToolResult:
    from agent_core.tools.builtin.grep.fallback_search import search_without_ripgrep  # noqa: PLC0415 - at first use

    path, kind = await place_of_search(arguments.path, context)
    is_file = kind == "file"
    folder = path.parent if is_file else path
    query = GrepQuery(
        pattern=scrub(arguments.pattern),
        glob=arguments.glob or None,
        ignore_case=arguments.ignore_case,
        literal=arguments.literal,
        context=min(arguments.context, MAX_CONTEXT),
        limit=arguments.limit,
    )
    if query.glob:
        _ = file_glob(query.glob.removeprefix("!"))  # explains what can fit nothing
    tree = await searched(context.workspace, folder, glob=query.glob)
    withheld = WithheldFiles(tree, context)
    place = await _file_place(path, tree) if is_file else await _folder_place(tree)
    found = GrepMatches(limit=query.limit, context=query.context)
    details: dict[str, JsonValue] = {"pattern": arguments.pattern, "path": str(path)}
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
