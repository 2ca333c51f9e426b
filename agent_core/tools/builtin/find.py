"""The tool `find`: files by name, through the same walk as every search."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, field_validator

from agent_core.kernel import JsonObject
from agent_core.kernel.text import DEFAULT_MAX_BYTES, format_size
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.search.common import (
    ADVICE,
    PATH_NAMES,
    SearchLimit,
    folder_said,
    pattern_said,
)
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec

DEFAULT_LIMIT = 1_000


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
    from agent_core.tools.builtin.search.find_files import find_files  # noqa: PLC0415 - at first use

    return await find_files(arguments.pattern, arguments.path, context, limit=arguments.limit)
