"""The tool `find`: files and folders whose names or paths fit a glob pattern."""

from collections.abc import Mapping
from typing import ClassVar

from anyio import to_thread
from pydantic import Field, field_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.truncation import DEFAULT_MAX_BYTES, format_size, truncate_head
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.find.matches import END, FoundPaths
from agent_core.tools.builtin.path_arguments import PATH_NAMES
from agent_core.tools.builtin.search.common import (
    ADVICE,
    SearchLimit,
    cut_facts,
    folder_said,
    notices,
    pattern_said,
    place_of_search,
)
from agent_core.tools.builtin.search.globs import PathPattern, find_pattern
from agent_core.tools.builtin.search.ripgrep import HERE, RipgrepRefused, RipgrepUnusable, ripgrep
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed_buffers, searched, walk
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result

DEFAULT_LIMIT = 1_000
NOTHING = "No files found matching pattern"
BATCH_CHARS = 65_536


class FindArguments(ToolArguments):
    """Arguments of `find`."""

    other_names: ClassVar[Mapping[str, str]] = {
        **PATH_NAMES,
        "glob": "pattern",
        "name": "pattern",
        "query": "pattern",
        "max_results": "limit",
    }

    pattern: str = Field(
        description='A glob such as "*.py", "test_*" or "src/**/*.{ts,tsx}"; with a slash it is about the path, else about the name'
    )
    path: str | None = Field(
        default=None, description="The folder to look in (default: the workspace)"
    )
    limit: SearchLimit = Field(
        default=DEFAULT_LIMIT,
        description=f"How many paths to give at most (default: {DEFAULT_LIMIT})",
    )

    @field_validator("pattern")
    @classmethod
    def _some(cls, pattern: str) -> str:
        if not pattern.strip():
            message = 'The pattern is empty: "*" finds everything'
            raise ValueError(message)
        return pattern


def find_tool() -> ModelTool[FindArguments]:
    """Make the tool."""
    size = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="find",
            description=f"Find files and folders by a glob pattern. Gives sorted paths relative to the searched folder, those of folders with a slash at the end, at most {DEFAULT_LIMIT} or {size}, whichever comes first. Honours .gitignore, gives hidden files too, leaves out .git, empty folders and links.",
            parameters=schema_of(FindArguments),
            kind="read",
            parallel_safe=True,
            snippet="Find files by glob pattern",
            guidelines=(ADVICE,),
        ),
        arguments=FindArguments,
        titled=_title,
        execute=_find,
    )


def _title(arguments: JsonObject) -> str:
    return f"find {pattern_said(arguments)} in {folder_said(arguments)}"


async def _find(arguments: FindArguments, context: ToolContext) -> ToolResult:
    folder, kind = await place_of_search(arguments.path, context)
    if kind != "folder":
        message = f"Not a directory: {folder}. Give its folder as path, or use read to see the file"
        raise ToolError(message)
    pattern = find_pattern(arguments.pattern, folder=folder)
    tree = await searched(context.workspace, folder)
    unsaved = await listed_buffers(tree)
    details: dict[str, JsonValue] = {"pattern": arguments.pattern, "path": str(folder)}
    try:
        found = await _with_ripgrep(pattern, tree, context, limit=arguments.limit)
        details["engine"] = "ripgrep"
    except RipgrepUnusable:
        found = await _with_walk(pattern, tree, limit=arguments.limit)
        details["engine"] = "builtin"
    found.add("".join(f"{path}{END}" for path in unsaved))
    return await to_thread.run_sync(_result, found, arguments.limit, details)


async def _with_ripgrep(
    pattern: PathPattern, tree: SearchedFolder, context: ToolContext, *, limit: int
) -> FoundPaths:
    """List with ripgrep.

    Raises:
        RipgrepUnusable: It cannot be used here; nothing was found yet.
    """
    found = FoundPaths(pattern, limit=limit)
    rest = b""
    async with ripgrep(("--files", "--null"), context, tree) as run:
        while data := await run.read():
            whole, end, rest = (rest + data).rpartition(b"\0")
            found.add((whole + end).decode("utf-8", "replace"), prefix=HERE)
        try:
            await run.check(rest.decode("utf-8", "replace"))
        except RipgrepRefused as refused:
            raise RipgrepUnusable(str(refused)) from refused
    return found


async def _with_walk(pattern: PathPattern, tree: SearchedFolder, *, limit: int) -> FoundPaths:
    found = FoundPaths(pattern, limit=limit)
    listing = ""
    async for path in walk(tree):
        listing += path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") + END
        if len(listing) > BATCH_CHARS:
            found.add(listing)
            listing = ""
    found.add(listing)
    return found


def _result(found: FoundPaths, limit: int, details: dict[str, JsonValue]) -> ToolResult:
    paths, limit_reached = found.paths()
    text = "\n".join(_one_line(path) for path in paths)
    page = truncate_head(text, max_lines=len(text) + 1)
    details |= {
        "result_count": len(paths),
        "limit_reached": limit_reached,
        "truncated": limit_reached or page.truncated,
    }
    if page.truncated:
        details["truncation"] = cut_facts(page)
    if not paths:
        return text_result(NOTHING, details=details)
    said = notices(
        f"{limit} results limit reached. Use limit={limit * 2} for more, or refine pattern"
        if limit_reached
        else "",
        f"{format_size(page.max_bytes)} limit reached" if page.truncated else "",
    )
    return text_result(page.content + said, details=details)


def _one_line(path: str) -> str:
    """Write a path so that it is one line, whatever is in it."""
    return path if path.isprintable() else path.replace("\n", "\\n").replace("\r", "\\r")
