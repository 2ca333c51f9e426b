"""In what a server of the Responses API differs from OpenAI's own: known by its address, or told by models.json."""

from urllib.parse import urlsplit

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.providers.messages.request_options import (
    configured_retention,
    openai_keeps_long,
    takes_long,
)
from agent_core.providers.model import CacheRetention, ModelInfo

OPENAI = "api.openai.com"
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
OPENROUTER = "openrouter.ai"
XAI = "api.x.ai"
DEEPSEEK = "deepseek.com"
COPILOT = "githubcopilot.com"
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
SESSION_FORMATS = ("openai", "openai-nosession", "openrouter", "none")


class ResponsesCompat(Value, frozen=True, kw_only=True):
    """Capabilities of a server; the names in models.json are in camelCase."""

    store: bool
    """`store: false` may be sent; without it some servers keep every answer."""
    developer_role: bool
    strict_tools: bool
    """`strict: false` is sent: left out, OpenAI makes every parameter of a tool required."""
    max_output_tokens: bool
    cache_key: bool
    cache_retention: CacheRetention | None
    """None: as the request says."""
    long_retention: bool
    """`long` may be asked for."""
    session_format: str
    """Which headers tell the session: `openai`, `openai-nosession`, `openrouter` or `none`."""
    reasoning_effort: bool
    off_effort: str | None
    """The word for no reasoning at all, where a model has none of its own; None: nothing is sent."""
    reasoning_summary: bool
    encrypted_reasoning: bool
    """Thoughts can be asked for in a form that goes back with the next request."""
    reasoning_ids: bool
    """Thoughts go back with their ids."""
    images_in_results: bool
    """The result of a tool may hold pictures; otherwise they follow in the user's name."""


def responses_compat(model: ModelInfo) -> ResponsesCompat:
    """Return the capabilities of a model's server; models.json has precedence, field by field."""
    host = _host(model.base_url)
    azure = model.api == "azure-openai-responses" or host.endswith(AZURE)
    official = azure or host == OPENAI
    router = _at(host, OPENROUTER)
    deepseek = _at(host, DEEPSEEK)
    # Servers on this machine and DeepSeek give their raw thoughts; there is nothing to encrypt or to sum up.
    raw_thoughts = deepseek or host in THIS_MACHINE
    settings = model.compat
    return ResponsesCompat(
        store=_flag(settings, "supportsStore", default=True),
        developer_role=_flag(settings, "supportsDeveloperRole", default=official),
        strict_tools=_flag(settings, "supportsStrictMode", default=True),
        max_output_tokens=_flag(settings, "supportsMaxOutputTokens", default=True),
        cache_key=_flag(
            settings, "supportsPromptCacheKey", default=official or router or host == XAI
        ),
        cache_retention=configured_retention(model),
        long_retention=takes_long(model, default=official and openai_keeps_long(model)),
        session_format=_session_format(settings, host=host, router=router),
        reasoning_effort=_flag(settings, "supportsReasoningEffort", default=host != XAI),
        off_effort=None if _at(host, COPILOT) else "none",
        reasoning_summary=_flag(settings, "supportsReasoningSummary", default=not raw_thoughts),
        encrypted_reasoning=_flag(settings, "supportsEncryptedReasoning", default=not raw_thoughts),
        reasoning_ids=_flag(settings, "supportsReasoningIds", default=host != XAI),
        images_in_results=_flag(settings, "supportsImagesInToolResults", default=official),
    )


def _session_format(settings: JsonObject, *, host: str, router: bool) -> str:
    usual = "none"
    if router:
        usual = "openrouter"
    elif host == OPENAI:
        usual = "openai" if settings.get("sendSessionIdHeader") is not False else "openai-nosession"
    elif settings.get("sendSessionIdHeader") is True:
        usual = "openai"
    return _word(settings, "sessionAffinityFormat", SESSION_FORMATS, default=usual)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        # What it is makes no difference: nothing can be sent there.
        return ""


def _at(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _flag(settings: JsonObject, key: str, *, default: bool) -> bool:
    value = settings.get(key)
    return value if isinstance(value, bool) else default


def _word(settings: JsonObject, key: str, allowed: tuple[str, ...], *, default: str) -> str:
    value = settings.get(key)
    return value if isinstance(value, str) and value in allowed else default
