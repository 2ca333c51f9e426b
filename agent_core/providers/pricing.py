"""What an answer cost."""

from dataclasses import replace

from agent_core.messages import Cost, Usage
from agent_core.providers.port import Prices

PER_MILLION = 1_000_000


def priced(usage: Usage, prices: Prices | None) -> Usage:
    """Give the usage with its cost; unknown prices leave it unknown."""
    if prices is None:
        return usage
    size = usage.input + usage.cache_read + usage.cache_write
    for tier in sorted(prices.tiers, key=lambda tier: tier.input_above):
        if size > tier.input_above:
            prices = tier.prices
    cost = Cost(
        input=usage.input * prices.input / PER_MILLION,
        output=usage.output * prices.output / PER_MILLION,
        cache_read=usage.cache_read * prices.cache_read / PER_MILLION,
        cache_write=usage.cache_write * prices.cache_write / PER_MILLION,
    )
    return replace(usage, cost=cost)
