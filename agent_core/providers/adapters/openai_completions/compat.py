"""In what a server differs from OpenAI's own: known by its address, or told by models.json."""

from urllib.parse import urlsplit

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.providers.messages.cache_retention import (
    openai_keeps_long,
    takes_long,
    told_retention,
)
from agent_core.providers.model import CacheRetention, ModelFacts

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


def compat_of(facts: ModelFacts) -> Compat:
    """Return the capabilities of a model's server; models.json has precedence, field by field."""
    host = _host(facts.base_url)
    own = host == OPENAI
    # What is neither OpenAI nor a known gateway may be any local server: the older and plainer form is sent.
    standard = own or (host.endswith((".openai.azure.com", "openrouter.ai")))
    told = facts.compat
    return Compat(
        store=_flag(told, "supportsStore", default=own),
        developer_role=_flag(told, "supportsDeveloperRole", default=own),
        reasoning_effort=_flag(
            told, "supportsReasoningEffort", default=not _among(host, NO_EFFORT)
        ),
        minimal_effort=not _among(host, NO_MINIMAL),
        usage_in_streaming=_flag(told, "supportsUsageInStreaming", default=True),
        limit_field=_word(
            told,
            "maxTokensField",
            default="max_completion_tokens"
            if standard and not _among(host, OLD_LIMIT)
            else "max_tokens",
        ),
        thinking_format=_word(told, "thinkingFormat", default=_format(host)),
        reasoning_on_answers=_flag(
            told,
            "requiresReasoningContentOnAssistantMessages",
            default=_among(host, ("deepseek.com",)),
        ),
        cache_key=_flag(told, "supportsPromptCacheKey", default=own),
        cache_marks=_word(
            told,
            "cacheControlFormat",
            default="anthropic"
            if _among(host, GATEWAYS) and facts.id.startswith("anthropic/")
            else "",
        )
        == "anthropic",
        cache_retention=told_retention(facts),
        long_retention=takes_long(facts, default=own and openai_keeps_long(facts)),
        long_marks=takes_long(facts, default=_among(host, (OPENROUTER,))),
        strict_tools=False if _flag(told, "supportsStrictMode", default=own) else None,
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


def _flag(told: JsonObject, key: str, *, default: bool) -> bool:
    value: JsonValue = told.get(key)
    return value if isinstance(value, bool) else default


def _word(told: JsonObject, key: str, *, default: str) -> str:
    value: JsonValue = told.get(key)
    return value if isinstance(value, str) else default
