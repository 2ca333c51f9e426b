"""Figures that a provider tells, as whole tokens and finite dollars, whatever was sent: pure."""

from agent_core.kernel import JsonObject, JsonValue, json

MOST_TOKENS = 10**12
MOST_DOLLARS = 1e6
"""More than these one answer never had: a figure above is nonsense, and sums of it would not stay finite."""
TICKS_PER_DOLLAR = 10**10
"""The unit in which xAI bills."""


def count(value: JsonValue) -> int:
    """Read a count; a value that is not a number or is not plausible counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    # Infinity and what is no number fall out here as well.
    return int(value) if 0 < value <= MOST_TOKENS else 0


def billed(usage: JsonObject) -> float | None:
    """Read what was billed for an answer, in US dollars; None when the provider does not tell.

    Gateways bill a key of the user's own too, apart from what the maker of the model bills it.
    """
    ticks = _amount(usage.get("cost_in_usd_ticks"))
    if ticks:
        return ticks / TICKS_PER_DOLLAR
    cost = usage.get("cost")
    if json.is_object(cost):
        cost = cost.get("total_cost")
    dollars = _dollars(cost)
    upstream = _dollars(json.as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    if dollars is None or upstream is None or usage.get("is_byok") is not True:
        return dollars
    return dollars + upstream


def _dollars(value: JsonValue) -> float | None:
    amount = _amount(value)
    return amount if amount is not None and amount <= MOST_DOLLARS else None


def _amount(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer may be longer than any float.
    return float(value) if 0 <= value <= MOST_DOLLARS * TICKS_PER_DOLLAR else None
