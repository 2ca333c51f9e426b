"""Token counts and their price as the JSON of session files."""

import math

from agent_core.kernel import JsonValue
from agent_core.kernel.quick import quick
from agent_core.messages.values import Cost, Usage

_COST_KEYS = frozenset({"input", "output", "cacheRead", "cacheWrite", "total"})
_USAGE_KEYS = frozenset(
    {
        "input",
        "output",
        "cacheRead",
        "cacheWrite",
        "reasoning",
        "totalTokens",
        "cost",
        "costUnknown",
    }
)
_NEW_USAGE = quick(Usage)
_NEW_COST = quick(Cost)


def decode_usage(value: JsonValue) -> tuple[Usage, bool]:
    """Read token counts; anything that is no number counts as none.

    Returns:
        The usage, and whether it shows all that the JSON holds.
    """
    if not isinstance(value, dict):
        return Usage(), value is None
    cost, cost_is_whole = _cost(value.get("cost"))
    get = value.get
    usage = _NEW_USAGE(
        input=count(get("input")),
        output=count(get("output")),
        cache_read=count(get("cacheRead")),
        cache_write=count(get("cacheWrite")),
        reasoning=count(get("reasoning", 0)),
        cost=None if "costUnknown" in value else cost,
    )
    whole = cost_is_whole and _USAGE_KEYS.issuperset(value)
    return usage, whole and value.get("totalTokens", usage.total) == usage.total


def encode_usage(usage: Usage) -> dict[str, JsonValue]:
    """Write token counts and money.

    Other readers of the format take a cost for granted, so an unknown one is written as zero with a mark.
    """
    cost = usage.cost or Cost()
    out: dict[str, JsonValue] = {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }
    if usage.reasoning:
        out["reasoning"] = usage.reasoning
    out["totalTokens"] = usage.total
    out["cost"] = {
        "input": cost.input,
        "output": cost.output,
        "cacheRead": cost.cache_read,
        "cacheWrite": cost.cache_write,
        "total": cost.total,
    }
    if usage.cost is None:
        out["costUnknown"] = True
    return out


def whole_number(value: JsonValue) -> int:
    """Read a number, rounded towards zero; 0 when it is none."""
    if isinstance(value, int):
        return int(value)
    return int(value) if isinstance(value, float) and math.isfinite(value) else 0


def count(value: JsonValue) -> int:
    """Read how many; 0 when it is no number or below."""
    # Whole sessions pass through here: most values are plain numbers, and true is an int that is none.
    if type(value) is int:
        return max(value, 0)
    return max(0, whole_number(value))


def _cost(raw: JsonValue) -> tuple[Cost | None, bool]:
    if not isinstance(raw, dict):
        return None, raw is None
    cost = _NEW_COST(
        input=_money(raw.get("input")),
        output=_money(raw.get("output")),
        cache_read=_money(raw.get("cacheRead")),
        cache_write=_money(raw.get("cacheWrite")),
    )
    total = _money(raw.get("total", cost.total))
    # Sums differ in the last digits by the order of adding.
    adds_up = total == cost.total or math.isclose(total, cost.total, rel_tol=1e-6, abs_tol=1e-9)
    return cost, adds_up and _COST_KEYS.issuperset(raw)


def _money(value: JsonValue) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    try:
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0
