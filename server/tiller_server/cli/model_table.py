"""Models as lines of a terminal and as JSON: pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import encode
from agent_core.providers.messages.request_options import supported
from agent_core.providers.model import ModelInfo, Prices
from agent_core.providers.registry import ModelRegistry

HEADER: Final = ("MODEL", "WINDOW", "$ IN/OUT PER M", "CAN", "KEY")
GAP: Final = 2
"""Blanks between columns."""
NAME_WIDTH: Final = 18
VALUE_WIDTH: Final = 44
MILLION: Final = 1_000_000
THOUSAND: Final = 1_000
UNKNOWN: Final = "?"


def table(
    models: Sequence[ModelInfo], registry: ModelRegistry, *, default: str | None
) -> Iterator[str]:
    """Return a header and a line for each model, with a star before the default; as narrow as the names allow."""
    rows = [HEADER, *(_cells(model, registry) for model in models)]
    widths = [max(map(len, column)) + GAP for column in zip(*rows, strict=True)]
    for row, model in zip(rows, (None, *models), strict=True):
        mark = "*" if model is not None and default == model.ref else " "
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"{mark} {''.join(cells)}".rstrip()


def _cells(model: ModelInfo, registry: ModelRegistry) -> tuple[str, ...]:
    can = " ".join(
        word for word, has in (("think", model.reasoning), ("images", model.images)) if has
    )
    key = registry.key_source(model.provider) or "no key"
    return model.ref, tokens(model.context_window), money(model.prices), can, key


def described(
    model: ModelInfo, registry: ModelRegistry, sources: Mapping[str, str]
) -> Iterator[str]:
    """Return everything that is known of a model, line by line, each with where it comes from."""
    yield f"{'model':<{NAME_WIDTH}}{model.ref}"
    shown: Mapping[str, str] = {
        "name": model.name,
        "api": model.api,
        "base_url": model.base_url or "follows from region or project",
        "context_window": f"{model.context_window:,}" if model.context_window else UNKNOWN,
        "max_tokens": f"{model.max_tokens:,}",
        "reasoning": ", ".join(supported(model)),
        "images": "yes" if model.images else "no",
        "prices": UNKNOWN if model.prices is None else _listed(model.prices),
        "compat": encode(model.compat).decode() if model.compat else "",
    }
    for name, value in shown.items():
        if value:
            yield f"{name.replace('_', ' '):<{NAME_WIDTH}}{value:<{VALUE_WIDTH}} {sources.get(name, '')}"
    for tier in model.prices.tiers if model.prices else ():
        label = f"  above {tokens(tier.input_above)}"
        yield f"{label:<{NAME_WIDTH}}{_listed(tier.prices)}"
    key = registry.key_source(model.provider)
    yield f"{'key':<{NAME_WIDTH}}{key or registry.states()[model.provider].advice}"


def as_json(model: ModelInfo, registry: ModelRegistry) -> JsonObject:
    """Return a model for programs; never a header, which a user may have put a key into."""
    return {
        "model": model.ref,
        "name": model.name,
        "api": model.api,
        "baseUrl": model.base_url,
        "contextWindow": model.context_window or None,
        "maxTokens": model.max_tokens,
        "thinking": list(supported(model)),
        "images": model.images,
        "prices": None if model.prices is None else _prices_json(model.prices),
        "auth": registry.auth(model.provider),
        "keySource": registry.key_source(model.provider),
    }


def tokens(count: int) -> str:
    """Write a number of tokens shortly."""
    if count <= 0:
        return UNKNOWN
    if count >= MILLION:
        return f"{count / MILLION:.2f}".rstrip("0").rstrip(".") + "M"
    return f"{count // THOUSAND}k" if count >= THOUSAND else str(count)


def money(prices: Prices | None) -> str:
    """Write the prices of input and output; a plus where long inputs cost more."""
    if prices is None:
        return UNKNOWN
    return f"{prices.input:g}/{prices.output:g}{'+' if prices.tiers else ''}"


def _listed(prices: Prices) -> str:
    return (
        f"in {prices.input:g}, out {prices.output:g}, "
        f"cache read {prices.cache_read:g}, write {prices.cache_write:g}"
    )


def _prices_json(prices: Prices) -> JsonObject:
    plain: dict[str, JsonValue] = {
        "input": prices.input,
        "output": prices.output,
        "cacheRead": prices.cache_read,
        "cacheWrite": prices.cache_write,
    }
    if prices.tiers:
        plain["tiers"] = [
            {"inputTokensAbove": tier.input_above, **_prices_json(tier.prices)}
            for tier in prices.tiers
        ]
    return plain
