"""Decides which tools are active when a session begins."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.session.restore import tools_of
from agent_core.tools import Tool
from agent_core.transcript import AnyEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTools:
    """What a session begins with."""

    active: tuple[str, ...]
    """Names and presets; the caller's own tools come last and are always among them."""
    notices: tuple[str, ...] = ()
    """What the user should hear of it, a sentence each."""


def choose_tools(
    asked: str | Sequence[str] | None,
    *,
    own: Sequence[Tool],
    built_in: Sequence[Tool],
    settings: str | Sequence[str],
    path: Sequence[AnyEntry],
) -> StartTools:
    """Choose: what is asked for, else what the session had, else what the settings say.

    Args:
        asked: By whoever opens the session; None: nothing.
        own: Tools that whoever opens the session brings along.
        built_in: All others.
        settings: What holds where nothing was chosen.
        path: The session's present branch.
    """
    added = tuple(tool.spec.name for tool in own)
    chosen = tools_of(path) if asked is None else None
    if chosen is None:
        return StartTools(active=(*_words(settings if asked is None else asked), *added))
    known = {tool.spec.name for tool in (*built_in, *own)}
    there = tuple(name for name in chosen if name in known)
    missing = ", ".join(name for name in chosen if name not in known)
    told = (f"the session was with tools that are not there now: {missing}",) if missing else ()
    return StartTools(active=(*(there or _words(settings)), *added), notices=told)


def _words(chosen: str | Sequence[str]) -> tuple[str, ...]:
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)
