"""Options of the tools that read the web, from settings."""

from collections.abc import Mapping

from agent_core.kernel import JsonValue
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.settings.values import WebSettings


def web_options(web: WebSettings) -> dict[str, dict[str, JsonValue]]:
    """Return the options of `fetch` and `web_search`."""
    return {
        "fetch": {"timeoutS": web.timeout_s, "privateHosts": list(web.private_hosts)},
        "web_search": {
            "timeoutS": web.timeout_s,
            "service": web.search,
            "url": web.search_url,
        },
    }


def page_options(paths: AppPaths) -> Mapping[str, JsonValue]:
    """Return the user's options of the tool `fetch`, for pages that are fetched outside of a session. Blocking."""
    settings = load_settings_now([Layer(name="user", content=paths.settings)])
    return web_options(settings.values.web)["fetch"]
