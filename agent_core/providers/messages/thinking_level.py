"""How hard a model can think, and what that means in its provider's words."""

from collections.abc import Mapping

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, json
from agent_core.providers.model import ModelInfo

LEVELS: tuple[ThinkingLevel, ...] = (
    "off",
    "minimal",
    "low",
    "medium",
    "high",
    "xhigh",
    "max",
)
ONLY_WHEN_MAPPED = ("xhigh", "max")
LEVEL_MAP = "thinkingLevelMap"
"""The key in `compat` for a model's own words; null: the model has no such level."""
BUDGETS: Mapping[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 16_384,
    "max": 16_384,
}
"""Tokens of thought, for models that count."""
LEAST_BUDGET = 1_024
LEAST_ANSWER = 1_024


def supported(model: ModelInfo) -> tuple[ThinkingLevel, ...]:
    """List the levels that a model has, weakest first."""
    if not model.reasoning:
        return ("off",)
    level_map = json.as_object(model.compat.get(LEVEL_MAP))
    return tuple(level for level in LEVELS if _has(level, level_map))


def clamp(level: ThinkingLevel, model: ModelInfo) -> ThinkingLevel:
    """Return the nearest level that the model has: upwards first, then downwards."""
    has = supported(model)
    if level in has:
        return level
    wanted = LEVELS.index(level)
    above: list[ThinkingLevel] = [other for other in has if LEVELS.index(other) > wanted]
    if above:
        return above[0]
    below: list[ThinkingLevel] = [other for other in has if LEVELS.index(other) < wanted]
    return below[-1] if below else "off"


def effort(level: ThinkingLevel, model: ModelInfo) -> str:
    """Return the provider's word for a level that the model has."""
    word = json.as_object(model.compat.get(LEVEL_MAP)).get(level)
    return word if isinstance(word, str) else level


def _has(level: ThinkingLevel, level_map: JsonObject) -> bool:
    is_mapped = level in level_map
    return level_map[level] is not None if is_mapped else level not in ONLY_WHEN_MAPPED


def budget(level: ThinkingLevel, *, max_tokens: int) -> int:
    """Return how many tokens may be thought, so that some are left for the answer; 0: none at all."""
    tokens = min(BUDGETS.get(level, 0), max_tokens - LEAST_ANSWER)
    return tokens if tokens >= LEAST_BUDGET else 0
