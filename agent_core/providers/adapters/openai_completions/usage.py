"""Token counts of Chat Completions, in which every provider counts a little otherwise: pure."""

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import Usage


def read_usage(usage: JsonObject) -> Usage | None:
    """Read the counts; None when there are none."""
    if "prompt_tokens" not in usage and "completion_tokens" not in usage:
        return None
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    of_prompt = json.as_object(usage.get("prompt_tokens_details"))
    of_completion = json.as_object(usage.get("completion_tokens_details"))
    cached = _first(
        of_prompt.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("num_cached_tokens"),
    )
    written = _count(of_prompt.get("cache_write_tokens"))
    reasoning = _first(of_completion.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    total = _count(usage.get("total_tokens"))
    # xAI counts thoughts beside the completion, Gemini's gateways leave them out of it: there they are added.
    outside = reasoning > completion or (reasoning > 0 and total == prompt + completion + reasoning)
    return Usage(
        # Azure has reported more cached tokens than the prompt had.
        input=max(0, prompt - cached - written),
        output=completion + reasoning if outside else completion,
        cache_read=min(cached, prompt),
        cache_write=written,
        reasoning=reasoning,
    )


def _first(*values: JsonValue) -> int:
    return next((count for count in map(_count, values) if count), 0)


def _count(value: JsonValue) -> int:
    return max(0, int(value)) if isinstance(value, int | float) else 0
