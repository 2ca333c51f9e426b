"""Names of the built-in tools; tests/tools/test_presets.py holds them against the product."""

from collections.abc import Sequence
from typing import Final

ON_FILES: Final = ("read", "write", "edit", "bash", "grep", "find", "ls")
"""Those that work with paths of the workspace."""
ALL_TOOLS: Final = (
    *ON_FILES,
    "todo",
    "ask",
    "background",
    "fetch",
    "web_search",
    "plan",
    "task",
    "task_result",
    "task_list",
    "task_stop",
)
"""All of them, in the order of the preset `default`."""
ON_DEMAND: Final = ("web_search", "plan", "task_result", "task_list", "task_stop")
"""Offered once they are configured, in mode `plan`, or after a background task."""


def without(names: Sequence[str], left_out: Sequence[str]) -> tuple[str, ...]:
    """Return the names but some."""
    return tuple(name for name in names if name not in left_out)


DEFAULT_TOOLS: Final = without(ALL_TOOLS, ON_DEMAND)
"""Those that a new session offers."""
