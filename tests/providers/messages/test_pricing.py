"""Costs are exact sums of tokens and prices, by kind; what is unknown stays unknown."""

from decimal import Decimal

import pytest

from agent_core.messages import Cost, Usage
from agent_core.providers.catalog.catalogue import builtin_providers
from agent_core.providers.messages.builder import priced
from agent_core.providers.model import Prices, PriceTier

PLAIN = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
DEAR = Prices(input=6, output=22.5, cache_read=0.6, cache_write=7.5)
TIERED = Prices(
    input=3,
    output=15,
    cache_read=0.3,
    cache_write=3.75,
    tiers=(
        PriceTier(input_above=500_000, prices=Prices(input=9, output=30)),
        PriceTier(input_above=200_000, prices=DEAR),
    ),
)
USED = Usage(input=1_000, output=200, cache_read=50_000, cache_write=4_000)


def test_each_kind_of_token_has_its_price():
    assert priced(USED, PLAIN).cost == Cost(
        input=0.003, output=0.003, cache_read=0.015, cache_write=0.015
    )


def test_unknown_prices_leave_the_cost_unknown_and_free_is_not_unknown():
    assert priced(USED, None).cost is None
    assert priced(USED, Prices(input=0, output=0)).cost == Cost()


@pytest.mark.parametrize(
    ("read", "rate"),
    [(199_000, 3.0), (199_001, 6.0), (499_000, 6.0), (499_001, 9.0)],
    ids=["at the first", "above the first", "at the second", "above the second"],
)
def test_the_highest_tier_that_applies_counts_for_the_whole_request(read: int, rate: float):
    cost = priced(Usage(input=1_000, cache_read=read), TIERED).cost
    assert cost is not None
    assert cost.input == rate / 1_000


def test_amounts_are_exact_where_binary_fractions_are_not():
    prices = Prices(input=0.1, output=0.7)
    cost = priced(Usage(input=3, output=3), prices).cost
    assert cost == Cost(input=float(Decimal("0.0000003")), output=float(Decimal("0.0000021")))
    in_binary = 3 * 0.1 / 1_000_000
    assert in_binary != float(Decimal("0.0000003"))


def test_writes_that_are_kept_for_an_hour_cost_twice_the_input():
    cost = priced(USED, PLAIN, long_writes=1_000).cost
    assert cost is not None
    assert cost.cache_write == float(Decimal("0.01125") + Decimal("0.006"))
    all_long = priced(USED, PLAIN, long_writes=9_999).cost
    assert all_long is not None
    assert all_long.cache_write == 0.024


def test_what_was_billed_is_the_cost_shared_out_as_the_list_has_it():
    cost = priced(USED, PLAIN, billed=0.072).cost
    assert cost is not None
    assert cost.total == pytest.approx(0.072, abs=1e-15)
    assert cost.input == pytest.approx(0.006)
    assert cost.cache_read == pytest.approx(0.03)
    assert priced(USED, None, billed=0.02).cost == Cost(output=0.02)
    assert priced(USED, PLAIN, billed=0).cost == Cost()


def test_a_known_model_is_priced_as_its_list_says():
    (anthropic,) = [one for one in builtin_providers() if one.id == "anthropic"]
    (opus,) = [one for one in anthropic.models if one.id == "claude-opus-4-8"]
    assert priced(USED, opus.prices).cost == Cost(
        input=0.005, output=0.005, cache_read=0.025, cache_write=0.025
    )
