"""Decides which tools are active when a session begins."""

from collections.abc import Callable, Sequence
from functools import partial

from agent_core.kernel.values import Value
from agent_core.mcp.declarations import is_of_server
from agent_core.session.runs.recovered_state import tools_of
from agent_core.tools import Tool
from agent_core.transcript import AnyEntry


class StartTools(Value, frozen=True, kw_only=True):
    """Initial tools of a session."""

    active: tuple[str, ...]
    """Names and presets; the caller's own tools come last and are always among them."""
    notices: tuple[str, ...] = ()
    """Notices for the user about the choice, one sentence each."""
    wants: Callable[[str], bool] = lambda _: True
    """Whether a tool of another server is to be active, by its name, once it is there."""


def choose_tools(
    asked: str | Sequence[str] | None,
    *,
    own: Sequence[Tool],
    brought: Sequence[Tool] = (),
    built_in: Sequence[Tool],
    settings: str | Sequence[str],
    path: Sequence[AnyEntry],
) -> StartTools:
    """Choose the request, else the session's earlier choice, else the settings.

    Args:
        asked: Request of the session's opener; None: no request.
        own: Tools that the session's opener supplies.
        brought: Tools of extensions: active unless a set was chosen.
        built_in: All other tools.
        settings: Default set when nothing was chosen.
        path: The session's current branch.
    """
    added = tuple(tool.spec.name for tool in own)
    chosen = tools_of(path) if asked is None else None
    if chosen is None:
        tokens = _tokens(settings if asked is None else asked)
        here = tuple(word for word in tokens if not is_of_server(word))
        if tokens and tokens[0].startswith(("+", "-")) and not (here and here[0] == tokens[0]):
            here = ("default", *here)
        others = tuple(tool.spec.name for tool in brought) if asked is None else ()
        return StartTools(active=(*here, *others, *added), wants=partial(_is_wanted, tokens))
    available = {tool.spec.name for tool in (*built_in, *brought, *own)}
    there = tuple(name for name in chosen if name in available)
    missing = ", ".join(name for name in chosen if name not in available and not is_of_server(name))
    notices = (f"the session was with tools that are not there now: {missing}",) if missing else ()
    return StartTools(
        active=(*(there or _tokens(settings)), *added),
        notices=notices,
        wants=partial(_is_wanted, chosen),
    )


def _is_wanted(tokens: Sequence[str], name: str) -> bool:
    """Return whether a choice of tools means one that was not there yet: by its name, or as one of no preset."""
    if f"-{name}" in tokens:
        return False
    starts_from_default = bool(tokens) and tokens[0][:1] in {"+", "-"}
    return starts_from_default or not {"default", name, f"+{name}"}.isdisjoint(tokens)


def _tokens(chosen: str | Sequence[str]) -> tuple[str, ...]:
    parts = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    return tuple(word for part in parts for word in part.replace(",", " ").split())
