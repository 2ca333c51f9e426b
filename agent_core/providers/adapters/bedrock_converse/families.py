"""Differences between the model families of Bedrock, derived from a model's id. Pure."""

import re
from typing import Literal

from agent_core.providers.model import ModelInfo

Family = Literal["claude", "nova", "gpt-oss", "gpt", "other"]

CACHE_POINTS = "cachePoints"
"""The key in `compat`: an ARN of one's own does not tell what is behind it."""
_CACHING = re.compile(
    "|".join(
        (
            r"claude-3-(?:5-haiku|5-sonnet-20241022|7-)",
            r"claude-(?:opus|sonnet|haiku)-[4-9]",
            r"claude-[4-9]",
            r"amazon\.nova-(?:micro|lite|pro|premier|2)",
        )
    )
)


def family_of(model: str) -> Family:
    """Return the family of a model; ids have a region or an ARN before the maker's name."""
    if "anthropic.claude" in model or "claude-" in model:
        return "claude"
    if "amazon.nova" in model:
        return "nova"
    if "gpt-oss" in model:
        return "gpt-oss"
    return "gpt" if "openai.gpt" in model else "other"


def takes_cache_points(model: ModelInfo) -> bool:
    """Return whether a model is known to take cache points; others refuse them."""
    setting = model.compat.get(CACHE_POINTS)
    return setting if isinstance(setting, bool) else _CACHING.search(model.id) is not None


def caches_tools(family: Family) -> bool:
    """Return whether tools may have a cache point of their own."""
    return family == "claude"
