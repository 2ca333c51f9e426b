"""How long a provider may keep what it was sent, so that the same beginning costs less next time: pure."""

import re
from collections.abc import Mapping

from agent_core.kernel import JsonObject
from agent_core.providers.model import CacheRetention, ModelFacts, ModelRequest

LONG_SUPPORTED = "supportsLongCacheRetention"
"""The key in `compat` that says whether `long` may be asked for."""
OPENAI_LONG = "24h"

_RETENTIONS: Mapping[str, CacheRetention] = {"none": "none", "short": "short", "long": "long"}
# OpenAI's other models refuse the whole request: the older ones keep nothing for long, the newer ones
# have one lifetime for all.
_OPENAI_LONG = re.compile(r"gpt-5(?:\.[1-5])?(?!-mini|-nano)(?:-.*)?")


def told_retention(facts: ModelFacts) -> CacheRetention | None:
    """Return what models.json wants for this model; None: nothing, or no word that is known."""
    word = facts.compat.get("cacheRetention")
    return _RETENTIONS.get(word) if isinstance(word, str) else None


def retention(request: ModelRequest, told: CacheRetention | None) -> CacheRetention:
    """Return what holds for a request. Words that are never sent again stay uncached, whatever the model is told."""
    return "none" if request.cache == "none" else told or request.cache


def takes_long(facts: ModelFacts, *, default: bool) -> bool:
    """Return whether `long` may be requested; models.json has precedence."""
    told = facts.compat.get(LONG_SUPPORTED)
    return told if isinstance(told, bool) else default


def openai_keeps_long(facts: ModelFacts) -> bool:
    """Return whether OpenAI keeps what this model was sent for a day: it is known to, or models.json counts on it."""
    return told_retention(facts) == "long" or _OPENAI_LONG.fullmatch(facts.id) is not None


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
