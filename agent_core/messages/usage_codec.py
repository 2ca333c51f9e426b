"""Token counts and their price as the JSON of session files."""

import math

from agent_core.kernel import JsonObject, JsonValue
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
_PLAIN_COUNTS = 3
_PLAIN_PRICES = 5


def decode_usage(value: JsonValue) -> tuple[Usage, bool]:
    """Read token counts; anything that is no number counts as none.

    Returns:
        The usage, and whether it shows all that the JSON holds.
    """
    if not isinstance(value, dict):
        return Usage(), value is None
    plain = plain_usage(value)
    if plain is not None:
        return plain, True
    get = value.get
    cost, cost_is_whole = _cost(get("cost"))
    usage = Usage(
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


def plain_usage(raw: JsonObject) -> Usage | None:
    """Read counts as most are written; None when there is more or less, or anything else."""
    try:
        fresh, out, total = raw["input"], raw["output"], raw["totalTokens"]
    except KeyError:
        return None
    read, written, money = raw.get("cacheRead"), raw.get("cacheWrite"), raw.get("cost")
    found = _PLAIN_COUNTS + (read is not None) + (written is not None) + (money is not None)
    read, written = 0 if read is None else read, 0 if written is None else written
    # One by one: true is an int that is none, and what is below zero counts as none.
    if len(raw) != found or type(fresh) is not int or type(out) is not int or fresh < 0 or out < 0:
        return None
    if type(read) is not int or type(written) is not int or read < 0 or written < 0:
        return None
    cost = _plain_cost(money) if isinstance(money, dict) else None
    if total != fresh + out + read + written or (cost is None and money is not None):
        return None
    return Usage(
        input=fresh, output=out, cache_read=read, cache_write=written, reasoning=0, cost=cost
    )


def _plain_cost(raw: JsonObject) -> Cost | None:
    """Read money as we write it; None when there is more or less, or anything else."""
    try:
        fresh, out, read, written = raw["input"], raw["output"], raw["cacheRead"], raw["cacheWrite"]
        total = raw["total"]
    except KeyError:
        return None
    if len(raw) != _PLAIN_PRICES or type(total) is not float:
        return None
    if type(fresh) is not float or type(out) is not float:
        return None
    if type(read) is not float or type(written) is not float:
        return None
    # A sum that is finite has no part that is not.
    if fresh + out + read + written != total or not math.isfinite(total):
        return None
    return Cost(input=fresh, output=out, cache_read=read, cache_write=written)


def _cost(raw: JsonValue) -> tuple[Cost | None, bool]:
    if not isinstance(raw, dict):
        return None, raw is None
    plain = _plain_cost(raw)
    if plain is not None:
        return plain, True
    cost = Cost(
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
