"""Every name that is sent is a published one, or below `tiller.`, or one of a few that are listed with their source."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from enum import Enum
from types import ModuleType

import opentelemetry.semconv._incubating.attributes as incubating_attributes
import opentelemetry.semconv._incubating.metrics as incubating_metrics
import opentelemetry.semconv.attributes as stable_attributes
import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from agent_core.messages import AssistantMessage, Cost, Usage
from agent_core.providers import ModelInfo, ModelRequest, Prices
from agent_core.telemetry import names

NOT_IN_THE_PACKAGE: Mapping[str, str] = {
    "gen_ai.invoke_agent.duration": "opentelemetry-util-genai 1.3b0",
    "gen_ai.execute_tool.duration": "opentelemetry-util-genai 1.3b0",
    "gen_ai.invoke_workflow.duration": "opentelemetry-util-genai 1.3b0",
}
FACTS = ModelInfo(
    provider="google",
    id="gemini-3",
    api="google-generative-ai",
    name="Gemini",
    context_window=1000,
    max_tokens=100,
    prices=Prices(input=1, output=1),
    base_url="https://generativelanguage.googleapis.com/v1beta",
)


def modules() -> Iterator[ModuleType]:
    """Import every module with names of the conventions."""
    for package in (incubating_attributes, incubating_metrics, stable_attributes):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def values_of(kind: type[Enum]) -> set[str]:
    return {str(one.value) for one in kind}


def published() -> set[str]:
    """Give every name, and every value that a name can have."""
    found: set[str] = set()
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, str):
                found.add(value)
            elif isinstance(value, type) and issubclass(value, Enum):
                found |= values_of(value)
    return found


def test_all_names_are_published() -> None:
    ours = {value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)}
    unknown = {name for name in ours - published() if not name.startswith("tiller.")}
    assert unknown == {*NOT_IN_THE_PACKAGE}
    assert {*names.HISTOGRAMS} <= ours
    providers = vars(gen_ai_attributes)["GenAiProviderNameValues"]
    assert {*names.PROVIDERS.values()} <= values_of(providers)


def test_nothing_that_is_deprecated_is_sent() -> None:
    assert not {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion"} & {
        value for value in vars(names).values() if isinstance(value, str)
    }


def test_a_call_has_the_attributes_of_the_conventions() -> None:
    asked = names.request(FACTS, ModelRequest(system="", messages=(), session="s1"))
    assert asked == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-3",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "s1",
        "server.address": "generativelanguage.googleapis.com",
        "server.port": 443,
    }
    message = AssistantMessage(
        content=(),
        api="x",
        provider="google",
        model="gemini-3-001",
        stop_reason="length",
        response_id="r1",
        at_ms=0,
    )
    assert names.answer(message) == {
        "gen_ai.response.id": "r1",
        "gen_ai.response.model": "gemini-3-001",
        "gen_ai.response.finish_reasons": ("length",),
    }


def test_input_includes_cached_tokens() -> None:
    used = Usage(
        input=1, output=5, cache_read=10, cache_write=100, reasoning=2, cost=Cost(input=0.5)
    )
    assert names.usage(used) == {
        "gen_ai.usage.input_tokens": 111,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "gen_ai.usage.cache_creation.input_tokens": 100,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "tiller.cost.usd": 0.5,
    }
    assert "tiller.cost.usd" not in names.usage(Usage(input=1)), "an unknown price is not zero"


@pytest.mark.parametrize("url", ["", "not a url", "http://[::1", "http://host:99999/x"])
def test_an_address_that_cannot_be_read_is_left_out(url: str) -> None:
    facts = ModelInfo(
        provider="p",
        id="m",
        api="embedded",
        name="M",
        context_window=0,
        max_tokens=0,
        base_url=url,
    )
    assert "server.address" not in names.target(facts)


def test_buckets_are_those_of_the_conventions() -> None:
    _, counts = names.HISTOGRAMS[names.CALL_COUNTS]
    _, durations = names.HISTOGRAMS[names.CALL_DURATION]
    assert (counts[0], counts[1], counts[-1], len(counts)) == (1, 4, 67_108_864, 14)
    assert (durations[0], durations[-1], len(durations)) == (0.01, 81.92, 14)
    assert {"input", "output"} == values_of(vars(gen_ai_attributes)["GenAiTokenTypeValues"])
