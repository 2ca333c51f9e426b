"""Writes `agent_core/providers/catalog/data/catalogue.json`: run before a release, with genai-prices installed.

The models and prices are those of genai-prices, what it does not tell is in `models.toml`, and the providers are in
`providers.toml`. Tiller reads only the result: importing genai-prices costs a fifth of a second and 3 MB.

    python -m scripts.catalogue.build [--check]
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import (
    ModelInfo,
    ModelPrice,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)

from agent_core.kernel.json import encode

HERE = Path(__file__).parent
RESULT = HERE.parents[1] / "agent_core" / "providers" / "catalog" / "data" / "catalogue.json"
LARGE_WINDOW = 65_536
MAX_TOKENS = 16_384
SMALL_SHARE = 4
KINDS = {
    "input": "input",
    "output": "output",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
}
CAMEL = {
    "base_url": "baseUrl",
    "key_variables": "keyVariables",
    "bearer_variables": "bearerVariables",
    "ambient_variables": "ambientVariables",
    "any_model": "anyModel",
    "key_check": "keyCheck",
}
COPIED = ("id", "name", "api", "keyless", "environment", "headers", "compat", *CAMEL)

Table = dict[str, Any]


def main() -> int:
    """Write the file, or tell whether it is as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    _ = parser.add_argument("--check", action="store_true", help="write nothing; 1 when it differs")
    options = parser.parse_args()
    before = RESULT.read_bytes() if RESULT.exists() else b""
    if options.check:
        made = built(at=_built_at(before))
        return 0 if made == before else 1
    made = built(at=datetime.now(tz=UTC))  # noqa: TID251 - a script, run by hand
    RESULT.parent.mkdir(exist_ok=True)
    _ = RESULT.write_bytes(made)
    _ = sys.stdout.write(f"{RESULT}: {len(made)} bytes\n")
    return 0


def built(*, at: datetime) -> bytes:
    """Give the file, with the prices that hold at a time."""
    providers = tomllib.loads((HERE / "providers.toml").read_text("utf-8"))["provider"]
    rules = tomllib.loads((HERE / "models.toml").read_text("utf-8"))
    listed = [_provider(one, rules, at=at) for one in providers]
    lines = ",\n".join(line for one in listed for line in _lines(one))
    head = f'"source":"genai-prices {version("genai-prices")}","at":"{at:%Y-%m-%d}"'
    return f'{{{head},"providers":[\n{lines}\n]}}\n'.encode()


def _built_at(raw: bytes) -> datetime:
    day = raw.partition(b'"at":"')[2][:10].decode()
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def _lines(provider: Table) -> Iterator[str]:
    """One line per model, so that a change can be read."""
    models = provider.pop("models", [])
    head = encode(provider).decode()
    if not models:
        yield head
        return
    rows = ",\n ".join(encode(model).decode() for model in models)
    yield f'{head[:-1]},"models":[\n {rows}]}}'


def _provider(given: Table, rules: Table, *, at: datetime) -> Table:
    shown: Table = {CAMEL.get(key, key): given[key] for key in COPIED if given.get(key)}
    if "oauth" in given:
        shown["oauth"] = {_camel(key): value for key, value in given["oauth"].items()}
    models = [_model(given["id"], one, rules) for one in given.get("models", ())]
    if "prices" in given:
        models += _priced(given, rules, at=at)
    models.sort(key=lambda model: model["id"] != given.get("default"))
    if models and models[0]["id"] != given["default"]:
        message = f"the default of {given['id']} is not among its models"
        raise SystemExit(message)
    shown["models"] = models
    return shown


def _priced(given: Table, rules: Table, *, at: datetime) -> Iterator[Table]:
    wanted: Table = given["prices"]
    (source,) = [one for one in get_snapshot().providers if one.id == wanted["provider"]]
    left_out = [
        *(f"{given['id']}/{one}" for one in wanted.get("leave_out", ())),
        *rules["leave_out"],
    ]
    for found in sorted(source.models, key=_by_version, reverse=True):
        identity = wanted.get("before_id", "") + found.id
        if wanted.get("lower_case"):
            identity = identity.lower()
        if found.deprecated or _fits(f"{given['id']}/{identity}", left_out):
            continue
        known: Table = {"id": identity, "name": found.name, "context_window": found.context_window}
        model = _model(given["id"], known, rules)
        price = _price_of(found, at=at)
        if model["contextWindow"] is None or _is_no_chat(found):
            continue
        if price is not None:
            model["cost"] = price
        yield {key: value for key, value in model.items() if value not in (None, False, {})}


def _by_version(model: ModelInfo) -> list[str | int]:
    """Numbers count as numbers: 4.10 is later than 4.9."""
    pieces = re.split(r"(\d+)", model.id.lower())
    return [int(piece) if piece.isdecimal() else piece for piece in pieces]


def _model(provider: str, known: Table, rules: Table) -> Table:
    facts: Table = dict(known)
    compat: Table = {}
    for rule in rules["rule"]:
        if _fits(f"{provider}/{known['id']}", rule["match"]):
            compat |= rule.get("compat", {})
            facts |= {key: value for key, value in rule.items() if key not in ("match", "compat")}
    window = facts.get("context_window")
    usual = MAX_TOKENS if (window or 0) >= LARGE_WINDOW else (window or 0) // SMALL_SHARE
    limit = min(facts.get("max_tokens") or usual, window or MAX_TOKENS)
    levels = {level: word or None for level, word in facts.get("levels", {}).items()}
    if levels and facts.get("reasoning"):
        compat["thinkingLevelMap"] = levels
    model: Table = {
        "id": facts["id"],
        "name": facts.get("name"),
        "api": facts.get("api"),
        "contextWindow": window,
        "maxTokens": limit,
        "reasoning": facts.get("reasoning"),
        "images": facts.get("images"),
        "pdf": facts.get("pdf"),
        "compat": compat,
    }
    return {key: value for key, value in model.items() if key == "contextWindow" or value}


def _price_of(model: ModelInfo, *, at: datetime) -> Table | None:
    """Give the prices at a time; None when they change with the hour, for that would be a guess."""
    prices = model.prices
    if isinstance(prices, list):
        if any(isinstance(one.constraint, TimeOfDateConstraint) for one in prices):
            return None
        held = [
            one.prices
            for one in prices
            if not isinstance(one.constraint, StartDateConstraint)
            or one.constraint.start_date <= at.date()
        ]
        prices = held[-1]
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    starts = sorted(
        {tier.start for kind in KINDS for tier in _tiers(getattr(prices, f"{kind}_mtok", None))}
    )
    cost = _at_size(prices, 0)
    if starts:
        cost["tiers"] = [
            {"inputTokensAbove": start} | _at_size(prices, start + 1) for start in starts
        ]
    return cost


def _at_size(prices: ModelPrice, tokens: int) -> Table:
    """Prices for a request of so many tokens; what is not listed apart is billed as plain input."""
    found: Table = {}
    for kind, name in KINDS.items():
        price = getattr(prices, f"{kind}_mtok", None)
        if price is None:
            price = prices.input_mtok
        assert price is not None, "checked before: what has no price for input has none at all"  # noqa: S101
        if isinstance(price, TieredPrices):
            above = [tier.price for tier in price.tiers if tokens > tier.start]
            price = above[-1] if above else price.base
        number = float(price)
        found[name] = int(number) if number.is_integer() else number
    return found


def _tiers(price: object) -> Sequence[Any]:
    return price.tiers if isinstance(price, TieredPrices) else ()


def _is_no_chat(model: ModelInfo) -> bool:
    prices = model.prices[0].prices if isinstance(model.prices, list) else model.prices
    return prices.output_mtok is None and prices.input_mtok is not None


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


if __name__ == "__main__":
    sys.exit(main())
