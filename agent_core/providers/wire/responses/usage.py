"""Token counts of the Responses API, and what they cost: pure."""

from collections.abc import Mapping

from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import Cost, Usage
from agent_core.providers.messages.pricing import priced
from agent_core.providers.messages.token_counts import billed, count
from agent_core.providers.model import ModelInfo

TIERS: Mapping[str, float] = {"flex": 0.5, "priority": 2.0, "fast": 2.0}
"""Price factor of each service tier, relative to the list price."""
DEARER = "gpt-5.5"
DEARER_FACTOR = 2.5


def responses_usage(usage: JsonObject) -> Usage:
    """Read the counts: cached tokens are part of the input, thoughts part of the output."""
    read = count(usage.get("input_tokens"))
    of_input = json.as_object(usage.get("input_tokens_details"))
    # Some gateways have reported more cached tokens than there was input.
    cached = min(count(of_input.get("cached_tokens")), read)
    written = min(count(of_input.get("cache_write_tokens")), read - cached)
    of_output = json.as_object(usage.get("output_tokens_details"))
    return Usage(
        input=read - cached - written,
        output=count(usage.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=count(of_output.get("reasoning_tokens")),
    )


def responses_cost(usage: Usage, response: JsonObject, model: ModelInfo) -> Usage:
    """Return the counts with their cost: the billed amount, else the list price for the tier of the response."""
    billed_usd = billed(json.as_object(response.get("usage")))
    listed = priced(usage, model.prices, billed=billed_usd)
    factor = _factor(response.get("service_tier"), model)
    cost = listed.cost
    if billed_usd is not None or cost is None or factor == 1:
        return listed
    scaled = Cost(
        input=cost.input * factor,
        output=cost.output * factor,
        cache_read=cost.cache_read * factor,
        cache_write=cost.cache_write * factor,
    )
    return replace(listed, cost=scaled)


def _factor(tier: JsonValue, model: ModelInfo) -> float:
    factor = TIERS.get(tier, 1.0) if isinstance(tier, str) else 1.0
    return DEARER_FACTOR if factor > 1 and model.id.startswith(DEARER) else factor
