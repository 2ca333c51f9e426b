"""Shared parts of grep, find and ls: limits, titles, notices and paths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec.structs import asdict
from pydantic import AfterValidator, BeforeValidator

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import FileMissing, ToolError
from agent_core.kernel.text import Truncation
from agent_core.tools.port import ToolContext

PATH_NAMES: Mapping[str, str] = {"file_path": "path", "filePath": "path", "filename": "path"}
"""Aliases of the path argument, from the tools of other agents that models remember."""


def path_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return path if isinstance(path, str) and path.strip() else "?"


MAX_LIMIT = 100_000
"""Far more than is ever shown."""
SHOWN_CHARS = 80
ADVICE = (
    "Prefer grep, find and ls to bash for looking around: they are faster and honour .gitignore."
)


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        message = "Input should be a number"
        raise ValueError(message)  # noqa: TRY004 - pydantic wants this class
    return value


def _usable(limit: int) -> int:
    return min(max(limit, 1), MAX_LIMIT)


def _not_negative(number: int) -> int:
    return max(number, 0)


SearchLimit = Annotated[int, AfterValidator(_usable), BeforeValidator(_no_truth)]
"""Most results to return; a number below 1 counts as 1, one above `MAX_LIMIT` as `MAX_LIMIT`."""
NonNegativeCount = Annotated[int, AfterValidator(_not_negative), BeforeValidator(_no_truth)]
"""Whole number from 0; a negative number counts as 0."""


async def place_of_search(
    path: str | None, context: ToolContext
) -> tuple[Path, Literal["file", "folder"]]:
    """Find what a model's words mean, and say what it is; without words it is the workspace.

    Raises:
        ToolError: Nothing is there, or a device.
        WorkspaceError: It may not be looked at.
    """
    found = await context.files.resolve(path or ".", "read")
    try:
        stat = await context.files.stat(found)
    except FileMissing as error:
        message = f"Path not found: {found}"
        raise ToolError(message) from error
    if stat.kind == "other":
        message = f"Not a file or folder: {found}"
        raise ToolError(message)
    return found, stat.kind


def folder_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return _short(path) if isinstance(path, str) and path.strip() else "."


def pattern_said(arguments: JsonObject) -> str:
    """Return the pattern of a call for a title, whatever the model wrote."""
    pattern = arguments.get("pattern")
    return _short(pattern) if isinstance(pattern, str) and pattern else "?"


def notices(*said: str) -> str:
    """Return notices about a cut result for the model, in one pair of brackets; empty when there are none."""
    sentences = [one for one in said if one]
    return f"\n\n[{'. '.join(sentences)}]" if sentences else ""


def cut_facts(page: Truncation) -> JsonObject:
    """Return what is known of a cut, for front ends."""
    return {name: value for name, value in asdict(page).items() if name != "content"}  # pyright: ignore[reportAny] - the fields are JSON


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"
