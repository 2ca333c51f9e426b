"""In what a server differs from OpenAI's own: known by its address, or told by models.json."""

from urllib.parse import urlsplit

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.providers.messages.request_options import (
    configured_retention,
    openai_keeps_long,
    takes_long,
)
from agent_core.providers.model import CacheRetention, ModelInfo

OPENAI = "api.openai.com"
OLD_LIMIT = (
    "chutes.ai",
    "deepseek.com",
    "moonshot.",
    "gateway.ai.cloudflare.com",
    "together.",
    "nvidia.com",
    "api.z.ai",
    "bigmodel.cn",
    "mistral.ai",
)
NO_EFFORT = (
    "api.x.ai",
    "api.z.ai",
    "bigmodel.cn",
    "moonshot.",
    "together.",
    "gateway.ai.cloudflare.com",
    "nvidia.com",
    "mistral.ai",
)
OPENROUTER = "openrouter.ai"
GATEWAYS = (OPENROUTER, "ai-gateway.vercel.sh")
NO_MINIMAL = ("api.groq.com", "cerebras.ai")
FORMATS = (
    (OPENROUTER, "openrouter"),
    ("deepseek.com", "deepseek"),
    ("api.z.ai", "zai"),
    ("bigmodel.cn", "zai"),
    ("dashscope", "qwen"),
    ("together.", "together"),
)


class Compat(Value, frozen=True, kw_only=True):
    """Capabilities of a server; the names in models.json are in camelCase."""

    store: bool
    developer_role: bool
    reasoning_effort: bool
    minimal_effort: bool
    """Without it, the least effort is `low`."""
    usage_in_streaming: bool
    limit_field: str
    """`max_completion_tokens`, or the older `max_tokens`."""
    thinking_format: str
    reasoning_on_answers: bool
    """Each earlier answer must carry a `reasoning_content`, also an empty one."""
    cache_key: bool
    cache_marks: bool
    """Cacheable content is marked in Anthropic's format."""
    cache_retention: CacheRetention | None
    """None: as the request says."""
    long_retention: bool
    """`prompt_cache_retention` may be sent."""
    long_marks: bool
    """Marks may name the longer time."""
    strict_tools: bool | None
    """None: `strict` is not sent at all."""


def compat_of(model: ModelInfo) -> Compat:
    """Return the capabilities of a model's server; models.json has precedence, field by field."""
    host = _host(model.base_url)
    own = host == OPENAI
    # What is neither OpenAI nor a known gateway may be any local server: the older and plainer form is sent.
    standard = own or (host.endswith((".openai.azure.com", "openrouter.ai")))
    settings = model.compat
    return Compat(
        store=_flag(settings, "supportsStore", default=own),
        developer_role=_flag(settings, "supportsDeveloperRole", default=own),
        reasoning_effort=_flag(
            settings, "supportsReasoningEffort", default=not _among(host, NO_EFFORT)
        ),
        minimal_effort=not _among(host, NO_MINIMAL),
        usage_in_streaming=_flag(settings, "supportsUsageInStreaming", default=True),
        limit_field=_word(
            settings,
            "maxTokensField",
            default="max_completion_tokens"
            if standard and not _among(host, OLD_LIMIT)
            else "max_tokens",
        ),
        thinking_format=_word(settings, "thinkingFormat", default=_format(host)),
        reasoning_on_answers=_flag(
            settings,
            "requiresReasoningContentOnAssistantMessages",
            default=_among(host, ("deepseek.com",)),
        ),
        cache_key=_flag(settings, "supportsPromptCacheKey", default=own),
        cache_marks=_word(
            settings,
            "cacheControlFormat",
            default="anthropic"
            if _among(host, GATEWAYS) and model.id.startswith("anthropic/")
            else "",
        )
        == "anthropic",
        cache_retention=configured_retention(model),
        long_retention=takes_long(model, default=own and openai_keeps_long(model)),
        long_marks=takes_long(model, default=_among(host, (OPENROUTER,))),
        strict_tools=False if _flag(settings, "supportsStrictMode", default=own) else None,
    )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        # What it is makes no difference: nothing can be sent there.
        return ""


def _format(host: str) -> str:
    return next((word for part, word in FORMATS if part in host), "openai")


def _among(host: str, parts: tuple[str, ...]) -> bool:
    return any(part in host for part in parts)


def _flag(settings: JsonObject, key: str, *, default: bool) -> bool:
    value: JsonValue = settings.get(key)
    return value if isinstance(value, bool) else default


def _word(settings: JsonObject, key: str, *, default: str) -> str:
    value: JsonValue = settings.get(key)
    return value if isinstance(value, str) else default
