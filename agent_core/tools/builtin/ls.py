"""The tool `ls`: entries of a folder, including those that exist only in an editor."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import NotAFolder, ToolError
from agent_core.kernel.json import scrub
from agent_core.kernel.text import DEFAULT_MAX_BYTES, format_size, truncate_head
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.search.common import (
    ADVICE,
    PATH_NAMES,
    SearchLimit,
    cut_facts,
    folder_said,
    notices,
    place_of_search,
)
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace import DirectoryEntry

DEFAULT_LIMIT = 500
NOTHING = "(empty directory)"


class LsArguments(ToolArguments):
    """Arguments of `ls`."""

    other_names: ClassVar[Mapping[str, str]] = {
        **PATH_NAMES,
        "directory": "path",
        "dir": "path",
        "folder": "path",
    }

    path: str | None = Field(default=None, description="The folder (default: the workspace)")
    limit: SearchLimit = Field(
        default=DEFAULT_LIMIT,
        description=f"How many entries to give at most (default: {DEFAULT_LIMIT})",
    )


def ls_tool() -> ModelTool[LsArguments]:
    """Make the tool."""
    size = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="ls",
            description=f"List what is in a folder, hidden files too, sorted by name; folders have a slash at the end. Gives at most {DEFAULT_LIMIT} entries or {size}, whichever comes first.",
            parameters=schema_of(LsArguments),
            kind="read",
            parallel_safe=True,
            snippet="List a folder",
            guidelines=(ADVICE,),
        ),
        arguments=LsArguments,
        titled=_title,
        execute=_ls,
    )


def _title(arguments: JsonObject) -> str:
    return f"ls {folder_said(arguments)}"


async def _ls(arguments: LsArguments, context: ToolContext) -> ToolResult:
    folder, kind = await place_of_search(arguments.path, context)
    if kind != "folder":
        message = f"Not a directory: {folder}"
        raise ToolError(message)
    try:
        entries = await context.files.list(folder)
    except NotAFolder as error:
        message = f"Not a directory: {folder}"
        raise ToolError(message) from error
    details: dict[str, JsonValue] = {"path": str(folder)}
    return await run_in_thread(_result, entries, arguments.limit, details)


def _result(
    entries: Sequence[DirectoryEntry], limit: int, details: dict[str, JsonValue]
) -> ToolResult:
    # What leads nowhere, or went away meanwhile, is passed over.
    there = sorted(
        (entry for entry in entries if entry.kind != "missing"),
        key=lambda entry: (entry.name.lower(), entry.name),
    )
    shown = there[:limit]
    left = len(there) - len(shown)
    text = "\n".join(_line(entry) for entry in shown)
    page = truncate_head(text, max_lines=len(text) + 1)
    details |= {
        "entry_count": len(there),
        "total_size": sum(entry.size for entry in there),
        "limit_reached": left > 0,
        "truncated": left > 0 or page.truncated,
    }
    if page.truncated:
        details["truncation"] = cut_facts(page)
    if not there:
        return text_result(NOTHING, details=details)
    said = notices(
        f"{limit} entries limit reached. Use limit={limit * 2} for more" if left else "",
        f"{left} more {'entry' if left == 1 else 'entries'}" if left else "",
        f"{format_size(page.max_bytes)} limit reached" if page.truncated else "",
    )
    return text_result(page.content + said, details=details)


def _line(entry: DirectoryEntry) -> str:
    name = scrub(entry.name.replace("\n", "\\n").replace("\r", "\\r"))
    return f"{name}/" if entry.kind == "folder" else name
