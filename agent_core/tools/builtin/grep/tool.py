"""The tool `grep`: lines of files that match a pattern, also of what editors hold unsaved."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from agent_core.kernel import JsonObject
from agent_core.kernel.json import scrub
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CHARS,
    format_size,
)
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.search.common import (
    ADVICE,
    PATH_NAMES,
    NonNegativeCount,
    SearchLimit,
    folder_said,
    pattern_said,
)
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec

DEFAULT_LIMIT = 100
MAX_CONTEXT = 1_000
MAX_PATTERN_CHARS = 10_000


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
    from agent_core.tools.builtin.grep.ripgrep import GrepQuery  # noqa: PLC0415 - at first use
    from agent_core.tools.builtin.grep.search import search  # noqa: PLC0415 - at first use

    query = GrepQuery(
        pattern=scrub(arguments.pattern),
        glob=arguments.glob or None,
        ignore_case=arguments.ignore_case,
        literal=arguments.literal,
        context=min(arguments.context, MAX_CONTEXT),
        limit=arguments.limit,
    )
    return await search(query, arguments.path, context)
