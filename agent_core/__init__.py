"""Tiller's core: a coding agent as a library, without any editor.

The names here are the public interface; everything else may change between two versions. Each name is loaded on first
use, so a program that needs one part of the core does not import all of it.
"""

from collections.abc import Mapping
from importlib import import_module

_PLACES: Mapping[str, str] = {
    "AgentSession": "agent_core.session",
    "CancelResult": "agent_core.session",
    "Event": "agent_core.events",
    "EventEnvelope": "agent_core.events",
    "File": "agent_core.messages",
    "Files": "agent_core.workspace",
    "Hook": "agent_core.hooks",
    "HookTable": "agent_core.hooks",
    "Image": "agent_core.messages",
    "Processes": "agent_core.workspace",
    "Receipt": "agent_core.session",
    "RunResult": "agent_core.events",
    "SessionSnapshot": "agent_core.session",
    "SessionStore": "agent_core.storage",
    "Text": "agent_core.messages",
    "TillerError": "agent_core.kernel.errors",
    "Tool": "agent_core.tools",
    "ToolContext": "agent_core.tools",
    "ToolResult": "agent_core.tools",
    "ToolSpec": "agent_core.tools",
    "Workspace": "agent_core.workspace",
    "create_session": "agent_core.assembly",
    "export_session": "agent_core.assembly",
}

__all__ = tuple(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll] - loaded on first use


def __dir__() -> list[str]:
    """Return the public names too, which are not there before they are used."""
    return sorted({*globals(), *_PLACES})


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(_PLACES[name]), name)  # pyright: ignore[reportAny] - any public name
    return value
