"""How hard a model of Bedrock is asked to think: each maker has fields of its own. Pure."""

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject
from agent_core.providers.adapters.bedrock_converse.families import Family
from agent_core.providers.messages.thinking_level import budget, clamp, effort
from agent_core.providers.model import ModelInfo, ModelRequest

INTERLEAVED = "interleaved-thinking-2025-05-14"


def extra_fields(
    request: ModelRequest, model: ModelInfo, family: Family, *, max_tokens: int
) -> JsonObject:
    """Return the fields beyond Converse; empty when there is nothing to ask for."""
    if not model.reasoning:
        return {}
    level = clamp(request.thinking, model)
    match family:
        case "claude":
            return _claude(level, request, model, max_tokens=max_tokens)
        case "gpt-oss" if level != "off":
            return {"reasoning_effort": _word(level, model)}
        case "gpt" if level != "off":
            return {"reasoning": {"effort": _word(level, model)}}
        case _:
            return {}


def _claude(
    level: ThinkingLevel, request: ModelRequest, model: ModelInfo, *, max_tokens: int
) -> JsonObject:
    if model.compat.get("forceAdaptiveThinking") is True:
        if level == "off":
            return {"thinking": {"type": "disabled"}}
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _word(level, model)},
        }
    tokens = budget(level, max_tokens=max_tokens) if level != "off" else 0
    if not tokens:
        return {}
    thinking: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": tokens}}
    return {**thinking, "anthropic_beta": [INTERLEAVED]} if request.tools else thinking


def _word(level: ThinkingLevel, model: ModelInfo) -> str:
    """Return the effort's name; the weakest of ours is none of theirs."""
    return "low" if level == "minimal" else effort(level, model)
