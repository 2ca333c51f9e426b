"""Cost of an answer, computed exactly and rounded once, in the result. Pure."""

from decimal import Decimal

from msgspec.structs import replace

from agent_core.messages import Cost, Usage
from agent_core.providers.model import Prices

PER_MILLION = Decimal(1_000_000)
LONG_WRITE = 2
"""Writing to a cache that is kept for an hour costs twice the plain input, wherever a price for it is known."""


def priced(
    usage: Usage, prices: Prices | None, *, long_writes: int = 0, billed: float | None = None
) -> Usage:
    """Return the usage with its cost; unknown prices leave it unknown.

    Args:
        usage: Tokens that the provider counted.
        prices: List prices of the model; None: unknown.
        long_writes: Tokens written to the cache for an hour, if the provider reports them.
        billed: Amount that the provider reports as billed, in US dollars. It is then the cost, divided among the
            kinds of token in proportion to the list prices; without list prices all of it is under `output`.
    """
    listed = None if prices is None else _listed(usage, prices, long_writes)
    if billed is not None:
        return replace(usage, cost=_shared(Decimal(str(billed)), listed))
    if listed is None:
        return usage
    fresh, output, read, written = (float(part) for part in listed)
    return replace(
        usage, cost=Cost(input=fresh, output=output, cache_read=read, cache_write=written)
    )


def _listed(
    usage: Usage, prices: Prices, long_writes: int
) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    prices = _in_force(usage, prices)
    long_writes = min(max(long_writes, 0), usage.cache_write)
    short = _amount(usage.cache_write - long_writes, prices.cache_write)
    return (
        _amount(usage.input, prices.input),
        _amount(usage.output, prices.output),
        _amount(usage.cache_read, prices.cache_read),
        short + _amount(long_writes, prices.input) * LONG_WRITE,
    )


def _in_force(usage: Usage, prices: Prices) -> Prices:
    size = usage.input + usage.cache_read + usage.cache_write
    above = [tier for tier in prices.tiers if size > tier.input_above]
    return max(above, key=lambda tier: tier.input_above).prices if above else prices


def _amount(tokens: int, rate: float) -> Decimal:
    # Through the text of the number: a rate of 0.1 is meant, not the nearest binary fraction.
    return tokens * Decimal(str(rate)) / PER_MILLION


def _shared(billed: Decimal, listed: tuple[Decimal, Decimal, Decimal, Decimal] | None) -> Cost:
    whole = sum(listed) if listed else Decimal(0)
    if not listed or not whole:
        return Cost(output=float(billed))
    fresh, _, read, written = (float(part / whole * billed) for part in listed)
    # The sum of the kinds is the bill: what rounding left over goes with the answer.
    output = float(billed) - fresh - read - written
    return Cost(input=fresh, output=max(output, 0.0), cache_read=read, cache_write=written)
