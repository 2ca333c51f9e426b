"""The Responses API in Azure: where a model is asked, by what name, and with what key."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.providers import ModelInfo
from agent_core.providers.adapters.azure_openai_responses import (
    AzureOpenAIResponses,
    deployment,
    responses_url,
)
from agent_core.providers.auth.credentials import RequestCredentials
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import LAB, OpenDoor, ask
from tests.providers.wire.responses_events import ended, words

FACTS = replace(LAB, provider="azure", id="gpt-5", api="azure-openai-responses", reasoning=True)
MINE = "https://mine.openai.azure.com"
PREVIEW = "2025-04-01-preview"


def at(base_url: str, **compat: Any) -> ModelInfo:
    return replace(FACTS, base_url=base_url, compat=compat)


@pytest.mark.parametrize(
    ("facts", "url"),
    [
        (at(MINE), f"{MINE}/openai/v1/responses"),
        (at(f"{MINE}/"), f"{MINE}/openai/v1/responses"),
        (at(f"{MINE}/openai"), f"{MINE}/openai/v1/responses"),
        (at(f"{MINE}/openai/v1/"), f"{MINE}/openai/v1/responses"),
        (
            at(f"{MINE}/openai/v1/responses?api-version=2025-03-01"),
            f"{MINE}/openai/v1/responses",
        ),
        (
            at("https://mine.services.ai.azure.com"),
            "https://mine.services.ai.azure.com/openai/v1/responses",
        ),
        (
            at("https://gate.example.com/azure/"),
            "https://gate.example.com/azure/responses",
        ),
        (
            at("https://gate.example.com/azure?team=a", azureApiVersion="preview"),
            "https://gate.example.com/azure/responses?team=a&api-version=preview",
        ),
        (at("", azureResourceName="mine"), f"{MINE}/openai/v1/responses"),
        (at(MINE, azureApiVersion="v1"), f"{MINE}/openai/v1/responses"),
        (
            at(MINE, azureApiVersion="preview"),
            f"{MINE}/openai/v1/responses?api-version=preview",
        ),
        (at(MINE, azureApiVersion=PREVIEW), f"{MINE}/openai/responses?api-version={PREVIEW}"),
    ],
    ids=[
        "a bare resource",
        "with a slash",
        "half a path",
        "a whole path",
        "an address copied whole",
        "foundry",
        "a gateway",
        "a gateway with a query",
        "by its name",
        "v1 said aloud",
        "preview",
        "dated",
    ],
)
def test_the_address_is_made_whole(facts: ModelInfo, url: str):
    assert responses_url(facts) == url


@pytest.mark.parametrize("base_url", ["", "mine", "https://[broken"])
def test_without_an_address_it_says_what_to_set(base_url: str):
    with pytest.raises(ProviderError, match="AZURE_OPENAI_RESOURCE_NAME") as caught:
        responses_url(at(base_url))
    assert caught.value.reason == "invalid_request"
    assert caught.value.before_first_byte


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (None, "gpt-5"),
        ("gpt-5=mine", "mine"),
        (" gpt-4 = other , gpt-5 = mine ,", "mine"),
        ("gpt-4=other", "gpt-5"),
        ("gpt-5=", "gpt-5"),
        ({"gpt-5": "mine"}, "mine"),
        ({"gpt-5": 5}, "gpt-5"),
    ],
    ids=["none", "one", "several", "another's", "empty", "an object", "no name"],
)
def test_a_model_is_asked_by_the_name_it_was_deployed_under(names: Any, name: str):
    assert deployment(at(MINE, azureDeploymentNameMap=names)) == name


class Token:
    """Lets requests in with a token of the company's directory."""

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials(key="token", bearer=True)


class Nobody:
    """Asks for no key."""

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials()


@pytest.mark.parametrize(
    ("door", "headers"),
    [
        (OpenDoor(), {"api-key": "sk-test-very-secret"}),
        (Token(), {"authorization": "Bearer token"}),
        (Nobody(), {}),
    ],
    ids=["key", "token", "none"],
)
async def test_it_is_asked_by_its_deployment_and_with_its_key(
    door: Any, headers: dict[str, str], pools: Pools
):
    async with loopback(Reply(sse(words("Hello"), ended()))) as server:
        facts = at(f"{server.url}/openai/v1", azureDeploymentNameMap="gpt-5=mine")
        outcome = await ask(AzureOpenAIResponses(facts, access=door, pool=pools()))
    assert outcome.message is not None
    assert (outcome.message.text, outcome.message.model) == ("Hello", "gpt-5")
    assert outcome.message.api == "azure-openai-responses"
    (sent,) = server.asked
    assert sent.path == "/openai/v1/responses"
    assert sent.body["model"] == "mine"
    assert sent.body["input"][0]["role"] == "developer"
    keys = ("api-key", "authorization")
    assert {key: sent.headers[key] for key in keys if key in sent.headers} == headers
