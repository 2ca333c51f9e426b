"""How hard a model of Bedrock is asked to think: each maker has fields of its own. Pure."""

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject
from agent_core.providers.adapters.bedrock_converse.families import Family
from agent_core.providers.messages.thinking_level import budget, clamp, effort
from agent_core.providers.model import ModelFacts, ModelRequest

INTERLEAVED = "interleaved-thinking-2025-05-14"


def extra_fields(
    request: ModelRequest, facts: ModelFacts, family: Family, *, max_tokens: int
) -> JsonObject:
    """Return the fields beyond Converse; empty when there is nothing to ask for."""
    if not facts.reasoning:
        return {}
    level = clamp(request.thinking, facts)
    match family:
        case "claude":
            return _claude(level, request, facts, max_tokens=max_tokens)
        case "gpt-oss" if level != "off":
            return {"reasoning_effort": _word(level, facts)}
        case "gpt" if level != "off":
            return {"reasoning": {"effort": _word(level, facts)}}
        case _:
            return {}


def _claude(
    level: ThinkingLevel, request: ModelRequest, facts: ModelFacts, *, max_tokens: int
) -> JsonObject:
    if facts.compat.get("forceAdaptiveThinking") is True:
        if level == "off":
            return {"thinking": {"type": "disabled"}}
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _word(level, facts)},
        }
    tokens = budget(level, max_tokens=max_tokens) if level != "off" else 0
    if not tokens:
        return {}
    thinking: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": tokens}}
    return {**thinking, "anthropic_beta": [INTERLEAVED]} if request.tools else thinking


def _word(level: ThinkingLevel, facts: ModelFacts) -> str:
    """Return the effort's name; the weakest of ours is none of theirs."""
    return "low" if level == "minimal" else effort(level, facts)
