"""Events of the Responses API, and what is made of them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.kernel.json import encode
from agent_core.messages import AssistantMessage
from agent_core.providers import ModelInfo, StreamEvent
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body
from agent_core.providers.wire.responses.stream import ResponseReader
from tests.providers.replay import HELLO, LAB
from tests.support.harness.clock import FakeClock

FACTS = replace(LAB, api="openai-responses", reasoning=True, images=True)
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 15,
}


def item(kind: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "type": "response.output_item.added",
        "output_index": index,
        "item": {"type": kind, **more},
    }


def whole(kind: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {**item(kind, index, **more), "type": "response.output_item.done"}


def words(text: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "type": "response.output_text.delta",
        "output_index": index,
        "delta": text,
        "obfuscation": "aX9",
        **more,
    }


def arguments(text: str, index: int, **more: Any) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "output_index": index, "delta": text, **more}


def summary(text: str, part: int, index: int = 0) -> dict[str, Any]:
    kind = "response.reasoning_summary_text.delta"
    return {"type": kind, "output_index": index, "summary_index": part, "delta": text}


def said(text: str) -> list[dict[str, Any]]:
    return [{"type": "output_text", "text": text, "annotations": []}]


def ended(status: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": status, "output": [], "usage": USAGE, **more}
    return {"type": f"response.{status}", "response": response}


def failed(**error: Any) -> dict[str, Any]:
    return ended("failed", error=error)


def read(*events: dict[str, Any]) -> tuple[AssistantMessage, list[StreamEvent]]:
    reader = ResponseReader(FACTS, FakeClock())
    for event in events:
        reader.read(event, name=b"")
    assert reader.has_end
    return reader.answer().message, reader.take()


def failure(*events: dict[str, Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        read(*events)
    return caught.value


def sent_back(message: AssistantMessage, facts: ModelInfo = FACTS) -> list[Any]:
    """Give the items by which an answer goes back."""
    request = replace(HELLO, system="", messages=(message,))
    body = responses_body(request, facts, compat=responses_compat(facts), model=facts.id)
    return json.loads(encode(body))["input"]
