"""Gemini and Bedrock refuse what the types allow: calls without as many results, sides out of turn, blank words."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agent_core.providers import ModelInfo
from agent_core.providers.adapters.bedrock_converse import request as bedrock_request
from agent_core.providers.wire.gemini import request
from tests.providers.replay import LAB
from tests.providers.requests.conversations import Signs, made_up_request
from tests.support.harness.sizes import at_size

SEEDS = range(at_size(ci=150, campaign=3_000))
SIGNED = Signs(text=lambda _: "c2ln", thought=lambda _: "dGg=", call=lambda _: "Y2Fs")
GEMINI = replace(LAB, api="google-generative-ai", images=True, reasoning=True)
CONVERSE = replace(GEMINI, api="bedrock-converse-stream")


def gemini(seed: int, facts: ModelInfo) -> Any:
    return request.request_body(made_up_request(seed, facts, SIGNED), facts)["contents"]


def converse(seed: int, facts: ModelInfo) -> Any:
    return bedrock_request.request_body(made_up_request(seed, facts, SIGNED), facts)["messages"]


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-flash-preview"])
def test_gemini_gets_as_many_results_as_calls_right_behind_them(model: str):
    calls_seen = 0
    for seed in SEEDS:
        contents = gemini(seed, replace(GEMINI, id=model))
        for content, following in zip(contents, [*contents[1:], {"parts": []}], strict=True):
            calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            answers = [
                part["functionResponse"]
                for part in following["parts"]
                if "functionResponse" in part
            ]
            named = [(call["name"], call.get("id")) for call in calls]
            assert [(answer["name"], answer.get("id")) for answer in answers] == named
            assert not calls or len(following["parts"]) == len(calls)
            calls_seen += len(calls)
    assert calls_seen > len(SEEDS)


def test_gemini_hears_no_two_answers_in_a_row_and_no_signature_that_is_not_base64():
    for seed in SEEDS:
        contents = gemini(seed, replace(GEMINI, id="gemini-3-flash-preview"))
        roles = [content["role"] for content in contents]
        assert ("model", "model") not in pairwise(roles)
        signatures = {part.get("thoughtSignature") for each in contents for part in each["parts"]}
        allowed = {None, "c2ln", "dGg=", "Y2Fs", request.UNSIGNED}
        assert signatures <= allowed


@pytest.mark.parametrize("model", ["anthropic.claude-sonnet-4-5", "amazon.titan-text-express-v1"])
def test_bedrock_gets_every_result_in_the_message_behind_its_calls(model: str):
    calls_seen = 0
    for seed in SEEDS:
        messages = converse(seed, replace(CONVERSE, id=model))
        for message, following in zip(messages, [*messages[1:], {"content": []}], strict=True):
            calls = [
                part["toolUse"]["toolUseId"] for part in message["content"] if "toolUse" in part
            ]
            results = [
                part["toolResult"]["toolUseId"]
                for part in following["content"]
                if "toolResult" in part
            ]
            assert results == calls
            calls_seen += len(calls)
    assert calls_seen > len(SEEDS)


def test_bedrock_hears_each_side_in_turn_and_never_blank_words():
    for seed in SEEDS:
        messages = converse(seed, replace(CONVERSE, id="anthropic.claude-sonnet-4-5"))
        roles = [message["role"] for message in messages]
        assert all(one != other for one, other in pairwise(roles))
        for message in messages:
            inner = [
                part
                for block in message["content"]
                for part in (block, *block.get("toolResult", {}).get("content", ()))
            ]
            assert all(part["text"].strip() for part in inner if "text" in part)
