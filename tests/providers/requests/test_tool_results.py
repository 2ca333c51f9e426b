"""What every API is sent for the result of a tool that has no text."""

from dataclasses import replace

import pytest

from agent_core.kernel import ToolCallId, json
from agent_core.messages import (
    AssistantMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers import ModelRequest
from agent_core.providers.adapters.ollama_chat.request import request_body
from tests.providers.replay import LAB
from tests.providers.requests.conversations import TOOLS
from tests.providers.requests.targets import TARGETS, Target, sent

CALL = ToolCallId("toolu_abcdefg12")


def asked(target: Target, *content: UserContent) -> ModelRequest:
    facts = target.model_facts()
    return ModelRequest(
        system="Be brief.",
        messages=(
            UserMessage(content=(Text(text="look"),), at_ms=0),
            AssistantMessage(
                content=(ToolCall(id=CALL, name="read", arguments={"path": "a"}),),
                api=facts.api,
                provider=facts.provider,
                model=facts.id,
                stop_reason="tool_use",
                at_ms=0,
            ),
            ToolResultMessage(call_id=CALL, tool_name="read", content=content, at_ms=0),
        ),
        tools=TOOLS,
    )


@pytest.mark.parametrize("content", [(), (Text(text=""),)], ids=["nothing", "no-text"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
async def test_a_result_without_text_speaks_of_no_picture(
    target: Target, content: tuple[UserContent, ...]
) -> None:
    body = await sent(target, target.model_facts(), asked(target, *content))
    assert b"(no tool output)" in body.raw
    assert b"attached image" not in body.raw


def test_ollama_is_told_of_no_picture_either() -> None:
    facts = replace(LAB, api="ollama-chat")
    target = Target(name="ollama", api="ollama-chat", judge="")
    body = json.encode(request_body(asked(target, Text(text="")), facts))
    assert b"(no tool output)" in body
    assert b"attached image" not in body
