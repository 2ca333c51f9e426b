"""Where a model of Vertex AI is asked: pure."""

import re
from urllib.parse import quote, urlsplit

from agent_core.kernel import JsonValue
from agent_core.providers.model import ModelInfo

HOST = "aiplatform.googleapis.com"
GLOBAL = "global"
_LOCATED = re.compile(r"//([a-z0-9-]+)-aiplatform\.googleapis\.com")
REGIONS_IN_ONE = ("us", "eu")
GEMINI_VERSION = "v1beta1"
CLAUDE_VERSION = "v1"


def is_claude(model: ModelInfo) -> bool:
    """Return whether a model is one of Anthropic's, which is asked in Anthropic's words."""
    return model.id.startswith("claude-")


def project_of(model: ModelInfo) -> str | None:
    """Return the project that is billed, from `compat`; None: not set."""
    return _word(model.compat.get("project"))


def url_of(model: ModelInfo, *, project: str | None) -> str:
    """Return the address of a model's stream; without a project, the one for keys."""
    location = _word(model.compat.get("location")) or _location_in(model.base_url) or GLOBAL
    base = _base(model, location if project else GLOBAL)
    if project:
        base = f"{base}/projects/{quote(project, safe=':')}/locations/{quote(location)}"
    return f"{base}/{_name(model)}:{_verb(model)}"


def _location_in(url: str) -> str | None:
    found = _LOCATED.search(url)
    return found[1] if found else None


def _base(model: ModelInfo, location: str) -> str:
    version = CLAUDE_VERSION if is_claude(model) else GEMINI_VERSION
    base = model.base_url.rstrip("/")
    if not base or HOST in base:
        # A catalogue knows one location; the user's choice is nearer.
        return f"https://{_host(location)}/{version}"
    return base if urlsplit(base).path else f"{base}/{version}"


def _host(location: str) -> str:
    if location == GLOBAL:
        return HOST
    if location in REGIONS_IN_ONE:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-{HOST}"


def _name(model: ModelInfo) -> str:
    # A model of one's own is an endpoint, and says so in its id.
    if "/" in model.id:
        return quote(model.id, safe="/@")
    publisher = "anthropic" if is_claude(model) else "google"
    return f"publishers/{publisher}/models/{quote(model.id, safe='@')}"


def _verb(model: ModelInfo) -> str:
    return "streamRawPredict" if is_claude(model) else "streamGenerateContent?alt=sse"


def _word(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
