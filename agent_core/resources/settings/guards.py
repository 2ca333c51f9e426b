"""Keeps layers that others write (a project, an editor's workspace) from loosening what the user decided."""

from collections.abc import Mapping, Sequence
from typing import Literal

from agent_core.kernel import JsonValue

LADDERS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("permission", "mode"): ("plan", "ask", "auto", "yolo"),
    ("permission", "fallback"): ("deny", "rules", "ask"),
    ("sandbox",): ("auto", "off"),
    ("defaultProjectTrust",): ("never", "ask", "always"),
}
"""Keys whose values go from strict to loose."""

CEILINGS = frozenset(("budgets", name) for name in ("usd", "tokens", "turns", "minutes"))
"""Keys that limit spending: null is no limit."""

USER_ONLY = frozenset(
    {
        *(("bash", "prefix"), ("bash", "shellPath"), ("extensions",), ("extensionConflicts",)),
        *(("containment", "passVariables"), ("containment", "readPaths")),
    }
)
"""Keys that name what is run (a command that the policy allows must stay that command), or what commands see of the user's."""

NEVER_EDITOR = frozenset({("skills",), ("prompts",)})
"""Keys that name instructions: a trusted project's are pinned, what an editor finds in a folder is not."""

GUARDED = frozenset(LADDERS) | CEILINGS | USER_ONLY | NEVER_EDITOR

Judgement = Literal["allowed", "loosens", "user-only"]


def judge(path: Sequence[str], *, by: str, below: JsonValue, wanted: JsonValue) -> Judgement:
    """Return whether a layer that may only tighten can set a key.

    Args:
        path: The key, outermost first.
        by: The layer: `project` or `editor`.
        below: The value without this layer.
        wanted: The value in this layer.
    """
    key = tuple(path)
    if key in USER_ONLY or (by == "editor" and key in NEVER_EDITOR):
        return "user-only"
    if ladder := LADDERS.get(key):
        return "allowed" if _rank(ladder, wanted) <= _rank(ladder, below) else "loosens"
    if key in CEILINGS:
        return "allowed" if _height(wanted) <= _height(below) else "loosens"
    return "allowed"


def _rank(ladder: tuple[str, ...], value: JsonValue) -> int:
    return ladder.index(value) if isinstance(value, str) and value in ladder else len(ladder)


def _height(value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("inf")
    return value
