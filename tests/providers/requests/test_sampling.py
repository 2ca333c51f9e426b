"""Temperature, top_p and stop texts of models.json in the request of each API."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.events import ThinkingLevel
from agent_core.messages import Text, UserMessage
from agent_core.providers import ModelInfo, ModelRequest
from agent_core.providers.adapters.bedrock_converse.request import request_body as bedrock
from agent_core.providers.adapters.mistral_conversations import request_body as mistral
from agent_core.providers.adapters.ollama_chat.request import request_body as ollama
from agent_core.providers.adapters.openai_completions.request import request_body as completions
from agent_core.providers.catalog.models_file import apply_models_file, read_models_file
from agent_core.providers.wire.anthropic.request import request_body as anthropic
from agent_core.providers.wire.gemini.request import request_body as gemini
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body

SET = {"temperature": 0.2, "topP": 0.9, "stop": ["END"]}
PATH = Path("models.json")


def read(api: str, **more: object) -> ModelInfo:
    """Read a model from a models.json."""
    model = {"id": "claude-m", "contextWindow": 32_000, "maxTokens": 4_096, **more}
    provider = {"baseUrl": "http://127.0.0.1:1", "api": api, "apiKey": "x", "models": [model]}
    file = read_models_file(json.dumps({"providers": {"lab": provider}}), path=PATH)
    assert file.problems == ()
    (made, *_), problems = apply_models_file((), file)
    assert problems == ()
    return made.models[0]


def asked(thinking: ThinkingLevel = "off") -> ModelRequest:
    message = UserMessage(content=(Text(text="hi"),), at_ms=0)
    return ModelRequest(system="", messages=(message,), thinking=thinking)


def responses(request: ModelRequest, model: ModelInfo) -> Any:
    return responses_body(request, model, compat=responses_compat(model), model=model.id)


APIS: list[Any] = [
    pytest.param("openai-completions", completions, (), "top_p", "stop", id="completions"),
    pytest.param("openai-responses", responses, (), "top_p", None, id="responses"),
    pytest.param("anthropic-messages", anthropic, (), "top_p", "stop_sequences", id="anthropic"),
    pytest.param("google-generative-ai", gemini, ("generationConfig",), "topP", "stopSequences", id="gemini"),
    pytest.param("mistral-conversations", mistral, (), "top_p", "stop", id="mistral"),
    pytest.param("bedrock-converse-stream", bedrock, ("inferenceConfig",), "topP", "stopSequences", id="bedrock"),
    pytest.param("ollama-chat", ollama, ("options",), "top_p", "stop", id="ollama"),
]  # fmt: skip


@pytest.mark.parametrize(("api", "body", "inside", "top_p", "stop"), APIS)
def test_sampling_options_are_sent(
    api: str, body: Any, inside: tuple[str, ...], top_p: str, stop: str | None
) -> None:
    fields, plain = body(asked(), read(api, **SET)), body(asked(), read(api))
    for name in inside:
        fields, plain = fields[name], plain[name]
    expected = {"temperature": 0.2, top_p: 0.9} | ({stop: ["END"]} if stop else {})
    assert {name: fields[name] for name in fields if name not in plain} == expected


@pytest.mark.parametrize(
    ("api", "body", "inside"),
    [
        pytest.param("anthropic-messages", anthropic, (), id="anthropic"),
        pytest.param("bedrock-converse-stream", bedrock, ("inferenceConfig",), id="bedrock"),
    ],
)
def test_claude_is_sent_only_stop_texts_while_it_thinks(
    api: str, body: Any, inside: tuple[str, ...]
) -> None:
    fields = body(asked("high"), read(api, reasoning=True, **SET))
    for name in inside:
        fields = fields[name]
    assert fields.keys() & {"temperature", "top_p", "topP"} == set()
    assert fields.keys() & {"stop_sequences", "stopSequences"} != set()


@pytest.mark.parametrize(
    ("field", "value"), [("temperature", 2.1), ("temperature", "hot"), ("topP", -1), ("stop", [""])]
)
def test_a_value_outside_of_its_range_is_reported(field: str, value: object) -> None:
    model = {"id": "m", field: value}
    provider = {"baseUrl": "http://127.0.0.1:1", "api": "ollama-chat", "models": [model]}
    text = json.dumps({"providers": {"lab": provider}})
    file = read_models_file(text, path=PATH)
    assert file.providers == {}
    assert f"models.0.{field}" in str(file.problems[0])
