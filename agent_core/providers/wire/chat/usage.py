"""Token counts of Chat Completions, in which every provider counts a little otherwise: pure."""

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.providers.messages.token_counts import billed, count


class Counted(Value, frozen=True, kw_only=True):
    """Usage of an answer."""

    usage: Usage
    billed: float | None = None
    """US dollars, where the provider tells."""


def read_usage(usage: JsonObject) -> Counted | None:
    """Read the counts and the bill; None when there are none."""
    if "prompt_tokens" not in usage and "completion_tokens" not in usage:
        return None
    prompt = count(usage.get("prompt_tokens"))
    completion = count(usage.get("completion_tokens"))
    of_prompt = json.as_object(usage.get("prompt_tokens_details"))
    of_completion = json.as_object(usage.get("completion_tokens_details"))
    cached = _first(
        of_prompt.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("num_cached_tokens"),
    )
    written = count(of_prompt.get("cache_write_tokens"))
    reasoning = _first(of_completion.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    total = count(usage.get("total_tokens"))
    # xAI counts thoughts beside the completion, Gemini's gateways leave them out of it: there they are added.
    outside = reasoning > completion or (reasoning > 0 and total == prompt + completion + reasoning)
    tokens = Usage(
        # Azure has reported more cached tokens than the prompt had.
        input=max(0, prompt - cached - written),
        output=completion + reasoning if outside else completion,
        cache_read=min(cached, prompt),
        cache_write=written,
        reasoning=reasoning,
    )
    return Counted(usage=tokens, billed=billed(usage))


def _first(*values: JsonValue) -> int:
    return next((found for found in map(count, values) if found), 0)
