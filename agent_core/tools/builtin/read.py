"""The tool `read`: a file's text by pages, from the editor's buffer where it is open."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import ClassVar

from anyio import to_thread
from pydantic import Field, field_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.truncation import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_LINES,
    Truncation,
    byte_count,
    count_lines,
    format_size,
    truncate_head,
)
from agent_core.tools.arguments import Count, ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.common import PATH_NAMES, path_said
from agent_core.tools.builtin.read_bytes import bytes_result
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace import FileBytes, FileText

LARGE_CHARS = 1_000_000
"""A longer text is cut in a thread."""


class ReadArguments(ToolArguments):
    """What `read` takes."""

    other_names: ClassVar[Mapping[str, str]] = PATH_NAMES

    path: str = Field(description="The file, relative to the workspace or absolute")
    offset: Count | None = Field(
        default=None, description="The line to begin with, from 1 (default: 1)"
    )
    limit: Count | None = Field(default=None, description="How many lines to read at most")

    @field_validator("offset", mode="before")
    @classmethod
    def _from_one(cls, value: object) -> object:
        # Some models count from 0.
        return 1 if value in {0, "0"} and not isinstance(value, bool) else value


def read_tool() -> ModelTool[ReadArguments]:
    """Make the tool."""
    limit = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="read",
            description=f"Read a text file or an image (png, jpeg, gif, webp). Gives at most {DEFAULT_MAX_LINES} lines or {limit}, whichever comes first; use offset and limit for the other parts of a large file. Unsaved changes in the editor are seen.",
            parameters=schema_of(ReadArguments),
            kind="read",
            parallel_safe=True,
            snippet="Read a file",
            guidelines=(
                "Use read to look at files instead of cat or sed.",
                "Read a file before you edit it.",
            ),
        ),
        arguments=ReadArguments,
        titled=_title,
        execute=_read,
    )


def _title(arguments: JsonObject) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    lines = ""
    if isinstance(offset, int) and isinstance(limit, int):
        lines = f":{offset}-{offset + limit - 1}"
    elif isinstance(offset, int):
        lines = f":{offset}"
    return f"read {path_said(arguments)}{lines}"


async def _read(arguments: ReadArguments, context: ToolContext) -> ToolResult:
    path = await context.files.resolve(arguments.path, "read")
    file = await context.files.read(path)
    if isinstance(file, FileBytes):
        return bytes_result(arguments.path, file)
    if len(file.text) > LARGE_CHARS:
        return await to_thread.run_sync(_page, arguments, file)
    return _page(arguments, file)


def _page(arguments: ReadArguments, file: FileText) -> ToolResult:
    total = count_lines(file.text)
    first = arguments.offset or 1
    if first > max(total, 1):
        message = f"Offset {first} is beyond end of file ({total} lines total)"
        raise ToolError(message)
    chosen = _lines(file.text, first=first, count=arguments.limit)
    page = truncate_head(chosen)
    last = first + page.output_lines - 1
    details: dict[str, JsonValue] = {
        "path": str(file.path),
        "source": file.source,
        "sha256": file.sha256,
        "version": file.version,
        "dirty": file.dirty,
        "encoding": file.encoding,
        "bom": file.bom,
        "line_count": total,
        "first_line": first,
        "last_line": last,
        "truncated": page.truncated,
    }
    if page.truncated:
        details["truncation"] = _facts(page)
    notice = _notice(arguments, page, chosen=chosen, first=first, last=last, total=total)
    if page.first_line_exceeds_limit:
        return text_result(notice, details=details)
    return text_result(f"{page.content}\n\n{notice}" if notice else page.content, details=details)


def _notice(
    arguments: ReadArguments, page: Truncation, *, chosen: str, first: int, last: int, total: int
) -> str:
    limit = format_size(page.max_bytes)
    if page.first_line_exceeds_limit:
        size = format_size(byte_count(chosen.partition("\n")[0]))
        path = shlex.quote(arguments.path)
        return f"[Line {first} is {size}, exceeds {limit} limit. Use bash: sed -n '{first}p' {path} | head -c {page.max_bytes}]"
    if page.truncated and last < total:
        why = f" ({limit} limit)" if page.truncated_by == "bytes" else ""
        return f"[Showing lines {first}-{last} of {total}{why}. Use offset={last + 1} to continue.]"
    if last < total:
        return f"[{total - last} more lines in file. Use offset={last + 1} to continue.]"
    return ""


def _lines(text: str, *, first: int, count: int | None) -> str:
    """Cut out whole lines; the newline at the end stays only at the end of the text."""
    start = 0
    for _ in range(first - 1):
        start = text.find("\n", start) + 1
    if count is None:
        return text[start:]
    stop = start - 1
    for _ in range(count):
        stop = text.find("\n", stop + 1)
        if stop < 0 or stop == len(text) - 1:
            return text[start:]
    return text[start:stop]


def _facts(page: Truncation) -> JsonObject:
    return {name: value for name, value in asdict(page).items() if name != "content"}  # pyright: ignore[reportAny] - the fields are JSON
