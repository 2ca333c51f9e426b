"""The lines that a tool changed, as a person looks at them: pure."""

from collections.abc import Iterator
from typing import Final

from agent_core.kernel import JsonValue
from agent_core.kernel.json import is_object

MOST_LINES: Final = 16
ADDED: Final = "32"
REMOVED: Final = "31"
AROUND: Final = "2"


def changed_lines(details: JsonValue) -> Iterator[tuple[str, str]]:
    """Return the first lines of the difference that a tool tells, each with its colour; nothing when it tells none."""
    patch = details.get("patch") if is_object(details) else None
    if not isinstance(patch, str):
        return
    lines = [line for line in patch.splitlines() if not line.startswith(("---", "+++", "@@", "\\"))]
    for line in lines[:MOST_LINES]:
        yield line, _style(line)
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} more lines", AROUND


def _style(line: str) -> str:
    if line.startswith("+"):
        return ADDED
    return REMOVED if line.startswith("-") else AROUND
