"""The providers and models that are known without any file: a small table."""

from dataclasses import dataclass, replace

from agent_core.kernel import JsonObject
from agent_core.providers.port import Api, ModelFacts, Prices, PriceTier

MAX_TOKENS = 32_000
"""Every model listed takes at least this much; models.json may raise it."""
LONG_INPUT = 272_000
"""Where OpenAI's second price begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFacts:
    """What is known of a provider."""

    id: str
    name: str
    api: Api | None
    """None: each of its models says for itself."""
    base_url: str
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key, in order."""
    bearer_variables: tuple[str, ...] = ()
    """The same, for tokens that go into `Authorization`."""
    keyless: bool = False
    """It lets everybody in."""
    models: tuple[ModelFacts, ...] = ()
    """The first is its default."""


def builtin_providers() -> tuple[ProviderFacts, ...]:
    """Give the table, in the order in which a default is looked for."""
    return (_ANTHROPIC, _OPENAI)


def _prices(*numbers: float) -> Prices:
    """Dollars per million tokens: input, cache read, cache write, output."""
    read, cached, written, output = numbers
    return Prices(input=read, cache_read=cached, cache_write=written, output=output)


def _tiered(base: Prices, *, above: int, dearer: Prices) -> Prices:
    return replace(base, tiers=(PriceTier(input_above=above, prices=dearer),))


def _claude(model: str, name: str, *, prices: Prices, window: int, adaptive: bool) -> ModelFacts:
    compat: JsonObject = {"forceAdaptiveThinking": True} if adaptive else {}
    return ModelFacts(
        provider="anthropic",
        id=model,
        api="anthropic-messages",
        name=name,
        context_window=window,
        max_tokens=MAX_TOKENS,
        prices=prices,
        reasoning=True,
        images=True,
        base_url="https://api.anthropic.com",
        compat=compat,
    )


def _gpt(
    model: str, name: str, *, prices: Prices, window: int, reasoning: bool = True
) -> ModelFacts:
    return ModelFacts(
        provider="openai",
        id=model,
        api="openai-completions",
        name=name,
        context_window=window,
        max_tokens=MAX_TOKENS,
        prices=prices,
        reasoning=reasoning,
        images=True,
        base_url="https://api.openai.com/v1",
    )


_ANTHROPIC = ProviderFacts(
    id="anthropic",
    name="Anthropic",
    api="anthropic-messages",
    base_url="https://api.anthropic.com",
    key_variables=("ANTHROPIC_API_KEY",),
    bearer_variables=("ANTHROPIC_AUTH_TOKEN",),
    models=(
        _claude(
            "claude-opus-5-5",
            "Claude Opus 5.5",
            prices=_prices(4, 0.2, 5, 20),
            window=1_000_000,
            adaptive=True,
        ),
        _claude(
            "claude-sonnet-5-5",
            "Claude Sonnet 5.5",
            prices=_prices(2, 0.1, 2.5, 10),
            window=1_000_000,
            adaptive=True,
        ),
        _claude(
            "claude-haiku-5-5",
            "Claude Haiku 5.5",
            prices=_tiered(
                _prices(0.1, 0.01, 0.125, 0.5),
                above=100_000,
                dearer=_prices(0.5, 0.05, 0.625, 2.5),
            ),
            window=1_000_000,
            adaptive=True,
        ),
        _claude(
            "claude-opus-4-8",
            "Claude Opus 4.8",
            prices=_prices(5, 0.5, 6.25, 25),
            window=1_000_000,
            adaptive=True,
        ),
        _claude(
            "claude-sonnet-4-6",
            "Claude Sonnet 4.6",
            prices=_prices(3, 0.3, 3.75, 15),
            window=1_000_000,
            adaptive=True,
        ),
        _claude(
            "claude-haiku-4-5",
            "Claude Haiku 4.5",
            prices=_prices(1, 0.1, 1.25, 5),
            window=200_000,
            adaptive=False,
        ),
    ),
)

_OPENAI = ProviderFacts(
    id="openai",
    name="OpenAI",
    api="openai-completions",
    base_url="https://api.openai.com/v1",
    key_variables=("OPENAI_API_KEY",),
    models=(
        _gpt(
            "gpt-6.1-sol",
            "GPT-6.1 Sol",
            prices=_tiered(
                _prices(2, 0.1, 2.5, 10), above=LONG_INPUT, dearer=_prices(4, 0.2, 5, 15)
            ),
            window=1_050_000,
        ),
        _gpt(
            "gpt-6.1-terra",
            "GPT-6.1 Terra",
            prices=_tiered(
                _prices(1, 0.05, 1.25, 5), above=LONG_INPUT, dearer=_prices(2, 0.1, 2.5, 7.5)
            ),
            window=1_050_000,
        ),
        _gpt(
            "gpt-6-luna",
            "GPT-6 Luna",
            prices=_tiered(
                _prices(0.1, 0.01, 0.125, 0.5),
                above=LONG_INPUT,
                dearer=_prices(0.2, 0.02, 0.25, 0.75),
            ),
            window=1_050_000,
        ),
        _gpt("gpt-5", "GPT-5", prices=_prices(1.25, 0.125, 0, 10), window=400_000),
        _gpt("gpt-5-mini", "GPT-5 mini", prices=_prices(0.25, 0.025, 0, 2), window=400_000),
        _gpt(
            "gpt-4.1",
            "GPT-4.1",
            prices=_prices(2, 0.5, 0, 8),
            window=1_000_000,
            reasoning=False,
        ),
    ),
)
