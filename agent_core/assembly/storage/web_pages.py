"""Options for web pages that are fetched outside of a session."""

from collections.abc import Mapping

from agent_core.assembly.config import web_options
from agent_core.kernel import JsonValue
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings_now


def page_options(paths: AppPaths) -> Mapping[str, JsonValue]:
    """Return the user's options of the tool `fetch`. Blocking."""
    settings = load_settings_now([Layer(name="user", content=paths.settings)])
    return web_options(settings.values.web)["fetch"]
