"""How long a provider may keep what it was sent, so that the same beginning costs less next time: pure."""

import re
from collections.abc import Mapping

from agent_core.kernel import JsonObject
from agent_core.providers.model import CacheRetention, ModelInfo, ModelRequest

LONG_SUPPORTED = "supportsLongCacheRetention"
"""The key in `compat` that says whether `long` may be asked for."""
OPENAI_LONG = "24h"

_RETENTIONS: Mapping[str, CacheRetention] = {"none": "none", "short": "short", "long": "long"}
# OpenAI's other models refuse the whole request: the older ones keep nothing for long, the newer ones
# have one lifetime for all.
_OPENAI_LONG = re.compile(r"gpt-5(?:\.[1-5])?(?!-mini|-nano)(?:-.*)?")


def configured_retention(model: ModelInfo) -> CacheRetention | None:
    """Return what models.json wants for this model; None: nothing, or no word that is known."""
    word = model.compat.get("cacheRetention")
    return _RETENTIONS.get(word) if isinstance(word, str) else None


def retention(request: ModelRequest, configured: CacheRetention | None) -> CacheRetention:
    """Return what holds for a request. Words that are never sent again stay uncached, whatever the model is told."""
    return "none" if request.cache == "none" else configured or request.cache


def takes_long(model: ModelInfo, *, default: bool) -> bool:
    """Return whether `long` may be requested; models.json has precedence."""
    setting = model.compat.get(LONG_SUPPORTED)
    return setting if isinstance(setting, bool) else default


def openai_keeps_long(model: ModelInfo) -> bool:
    """Return whether OpenAI keeps what this model was sent for a day: it is known to, or models.json counts on it."""
    return configured_retention(model) == "long" or _OPENAI_LONG.fullmatch(model.id) is not None


def cache_control(kept: CacheRetention, *, long: bool) -> JsonObject | None:
    """Return Anthropic's `cache_control` mark for content to cache; None: no mark.

    Args:
        kept: The requested retention.
        long: Whether the server supports the longer retention; otherwise `long` is treated as `short`.
    """
    if kept == "none":
        return None
    if kept == "long" and long:
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}
