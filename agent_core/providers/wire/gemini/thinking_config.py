"""How hard a Gemini is asked to think: newer ones know levels, older ones count tokens. Pure."""

import re
from collections.abc import Mapping

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, json
from agent_core.providers.messages.thinking_level import LEAST_ANSWER, LEVEL_MAP, effort
from agent_core.providers.model import ModelInfo

DYNAMIC = -1
"""The model decides by itself."""
LEVELS: Mapping[ThinkingLevel, str] = {
    "off": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
PRO_LEVELS: Mapping[ThinkingLevel, str] = {**LEVELS, "off": "LOW", "minimal": "LOW"}
"""Only a Flash can do nearly without thinking."""
FIRST_PRO_LEVELS: Mapping[ThinkingLevel, str] = {**PRO_LEVELS, "medium": "HIGH"}
"""The first of them had two levels only."""
GEMMA_LEVELS: Mapping[ThinkingLevel, str] = {**LEVELS, "low": "MINIMAL", "medium": "HIGH"}
_ORDER: tuple[ThinkingLevel, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


def _budgets(*tokens: int) -> Mapping[ThinkingLevel, int]:
    return dict(zip(_ORDER, (*tokens, tokens[-1], tokens[-1]), strict=True))


PRO_BUDGETS = _budgets(128, 2_048, 8_192, 32_768)
FLASH_BUDGETS = _budgets(128, 2_048, 8_192, 24_576)
LITE_BUDGETS = _budgets(512, 2_048, 8_192, 24_576)
LEAST_PRO = 128
"""A 2.5 Pro refuses to think less."""

_GENERATION = re.compile(r"gemini-(\d+)")
_NEWEST = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest")
_GEMMA = re.compile(r"gemma-?4")
_FIRST_PRO = re.compile(r"gemini-3-pro")
NEW_GENERATION = 3


def is_new_gemini(model: str) -> bool:
    """Return whether a model is a Gemini of generation 3 or later."""
    found = _GENERATION.search(model)
    if found:
        return int(found[1]) >= NEW_GENERATION
    return _NEWEST.search(model) is not None


def thinking_config(
    level: ThinkingLevel, model: ModelInfo, *, max_tokens: int
) -> JsonObject | None:
    """Return the `thinkingConfig` for a level that the model has; None for a model that does not think."""
    if not model.reasoning:
        return None
    asked: JsonObject = {"includeThoughts": True} if level != "off" else {}
    if is_new_gemini(model.id) or _GEMMA.search(model.id):
        return {**asked, "thinkingLevel": _level(level, model)}
    return {**asked, "thinkingBudget": _budget(level, model.id, max_tokens=max_tokens)}


def _level(level: ThinkingLevel, model: ModelInfo) -> str:
    if isinstance(json.as_object(model.compat.get(LEVEL_MAP)).get(level), str):
        return effort(level, model).upper()
    if _GEMMA.search(model.id):
        return GEMMA_LEVELS[level]
    if _FIRST_PRO.search(model.id):
        return FIRST_PRO_LEVELS[level]
    return (LEVELS if "flash" in model.id else PRO_LEVELS)[level]


def _budget(level: ThinkingLevel, model: str, *, max_tokens: int) -> int:
    is_pro = "2.5-pro" in model
    if level == "off":
        return LEAST_PRO if is_pro else 0
    room = max_tokens - LEAST_ANSWER
    if is_pro:
        return max(min(PRO_BUDGETS[level], room), LEAST_PRO)
    for name, budgets in (("2.5-flash-lite", LITE_BUDGETS), ("2.5-flash", FLASH_BUDGETS)):
        if name in model:
            tokens = min(budgets[level], room)
            return tokens if tokens >= budgets["minimal"] else 0
    return DYNAMIC
