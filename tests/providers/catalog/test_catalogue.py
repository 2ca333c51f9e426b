"""The catalogue is whole, well-formed, and what its sources say."""

import json
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from agent_core.providers.auth.credentials import in_environment
from agent_core.providers.auth.oauth import DeviceFacts, PkceFacts
from agent_core.providers.catalog.catalogue import (
    CATALOGUE,
    ProviderInfo,
    builtin_providers,
    read_catalogue,
)
from agent_core.providers.catalog.models_file import ProviderShape
from agent_core.providers.messages.request_options import supported
from agent_core.providers.model import Prices

REPOSITORY = Path(__file__).resolve().parents[3]
PROVIDERS = {one.id: one for one in builtin_providers()}
EXPECTED = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "azure-openai": "azure-openai-responses",
    "google": "google-generative-ai",
    "google-vertex": "google-vertex",
    "amazon-bedrock": "bedrock-converse-stream",
    "github-copilot": "openai-completions",
    "xai": "openai-completions",
    "groq": "openai-completions",
    "cerebras": "openai-completions",
    "mistral": "mistral-conversations",
    "openrouter": "openai-completions",
    "zai": "openai-completions",
    "deepseek": "openai-completions",
    "moonshotai": "openai-completions",
    "minimax": "anthropic-messages",
    "huggingface": "openai-completions",
    "vercel-ai-gateway": "openai-completions",
    "together": "openai-completions",
    "fireworks": "openai-completions",
    "ollama": "ollama-chat",
    "lmstudio": "openai-completions",
    "llamacpp": "openai-completions",
    "vllm": "openai-completions",
}


def test_every_provider_is_there_with_its_api_in_order():
    assert {one.id: one.api for one in builtin_providers()} == EXPECTED
    assert [one.id for one in builtin_providers()] == list(EXPECTED)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=lambda one: one.id)
def test_a_provider_is_complete(provider: ProviderInfo):
    from_place = {"azure-openai", "google-vertex", "amazon-bedrock"}
    keys = (*provider.key_variables, *provider.bearer_variables)
    assert provider.name
    assert provider.keyless is (keys == ())
    assert all(name.isupper() and name.replace("_", "").isalnum() for name in keys)
    if provider.id not in from_place:
        is_local = provider.base_url.startswith("http://127.0.0.1:")
        assert is_local is provider.keyless
        assert is_local or provider.base_url.startswith("https://")
        assert not provider.base_url.endswith("/")
    assert (provider.models == ()) is provider.keyless
    ids = [model.id for model in provider.models]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "provider", [one for one in PROVIDERS.values() if one.models], ids=lambda one: one.id
)
def test_its_models_are_sound(provider: ProviderInfo):
    for model in provider.models:
        assert model.provider == provider.id
        assert 0 < model.max_tokens <= model.context_window, model.ref
        assert supported(model), model.ref
        assert (LEVELS_KEY in model.compat) <= model.reasoning, model.ref
        if model.prices is not None:
            _check_prices(model.prices)


LEVELS_KEY = "thinkingLevelMap"


def _check_prices(prices: Prices) -> None:
    rates = (prices.input, prices.output, prices.cache_read, prices.cache_write)
    assert all(0 <= rate < 1_000 for rate in rates)
    assert all(low.input_above < high.input_above for low, high in pairwise(prices.tiers))
    for tier in prices.tiers:
        _check_prices(tier.prices)


def test_its_entries_are_as_models_json_would_have_them():
    for given in json.loads(CATALOGUE.read_bytes())["providers"]:
        shape = ProviderShape.model_validate(given)
        assert [model.id for model in shape.models] == [
            model.id for model in PROVIDERS[given["id"]].models
        ]


def test_no_price_is_guessed():
    deepseek = {model.id: model.prices for model in PROVIDERS["deepseek"].models}
    assert deepseek["deepseek-v4-pro"] is None, "it changes with the hour"
    assert all(model.prices is None for model in PROVIDERS["huggingface"].models)
    sonnet = next(one for one in PROVIDERS["anthropic"].models if one.id == "claude-sonnet-5-5")
    assert sonnet.prices == Prices(input=2, output=10, cache_read=0.1, cache_write=2.5)
    (tier,) = next(
        one.prices.tiers
        for one in PROVIDERS["openai"].models
        if one.id == "gpt-6.1-sol" and one.prices
    )
    assert (tier.input_above, tier.prices.input, tier.prices.output) == (272_000, 4, 15)


def test_the_logins_are_there():
    copilot, router = PROVIDERS["github-copilot"].oauth, PROVIDERS["openrouter"].oauth
    assert isinstance(copilot, DeviceFacts)
    assert copilot.exchange_url.startswith("https://api.github.com/")
    assert set(copilot.exchange_headers) == {"editor-version", "copilot-integration-id"}
    assert isinstance(router, PkceFacts)
    assert (router.style, router.callback_port) == ("key", 3000)


@pytest.mark.parametrize(
    "text",
    [
        '{"providers":[{"id":"a","api":"smoke-signals"}]}',
        '{"providers":[{"id":"a","oauth":{"kind":"x"}}]}',
    ],
)
def test_a_catalogue_that_is_wrong_is_noticed(text: str):
    with pytest.raises(ValueError, match="is no"):
        _ = read_catalogue(text.encode())


def test_the_environment_gives_addresses_and_regions_and_the_first_way_counts():
    azure = in_environment(
        PROVIDERS["azure-openai"],
        {"AZURE_OPENAI_RESOURCE_NAME": "mine", "AZURE_OPENAI_API_VERSION": "2025-04-01"},
    )
    assert azure.compat == {"azureResourceName": "mine", "azureApiVersion": "2025-04-01"}
    assert all(model.compat["azureResourceName"] == "mine" for model in azure.models)
    bedrock = in_environment(
        PROVIDERS["amazon-bedrock"], {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "us-west-2"}
    )
    assert bedrock.compat == {"region": "us-west-2"}
    assert in_environment(PROVIDERS["google-vertex"], {}) is PROVIDERS["google-vertex"]


@pytest.mark.skipif(find_spec("genai_prices") is None, reason="genai-prices is not installed")
def test_the_file_is_what_its_sources_make():
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.catalogue.build", "--check"],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, "run: python -m scripts.catalogue.build"
