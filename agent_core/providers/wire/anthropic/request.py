"""A request in the words of the Messages API, for its own servers and for Vertex AI: pure."""

import re
from collections.abc import Sequence
from typing import assert_never

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    File,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers.messages.history import EncodedHistory, SplitBody, split_turns
from agent_core.providers.messages.request_options import (
    TurnMessage,
    budget,
    cache_control,
    clamp,
    configured_retention,
    effort,
    output_limit,
    result_text,
    retention,
    sampling_fields,
    takes_long,
)
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration

VERSION = "2023-06-01"
"""Value of the header `anthropic-version`."""
ID_LIMIT = 64
INTERLEAVED = "interleaved-thinking-2025-05-14"
IMAGES_LEAD = "Attached image(s) from tool result:"
SCHEMA_KEYS = ("type", "properties", "required", "$defs")

_ID_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_Json = dict[str, JsonValue]


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    return split_body(request, model, None).fields


def split_body(
    request: ModelRequest, model: ModelInfo, history: EncodedHistory | None
) -> SplitBody:
    """Return the body to send, without the messages that are encoded already."""
    turns = split_turns(request, model, history, call_id=_call_id, convert=_messages)
    max_tokens = output_limit(request, turns.size, model)
    messages = list(turns.rest)
    mark = _mark(request, model)
    _mark_last(messages, mark)
    body: _Json = {
        "model": model.id,
        "max_tokens": max_tokens,
        "messages": messages,
        "stream": True,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        tools = [_tool(tool) for tool in request.tools]
        tools[-1].update(mark)
        body["tools"] = tools
    if model.reasoning:
        body.update(_thinking(request, model, max_tokens=max_tokens))
    thinks = json.as_object(body.get("thinking")).get("type") in {"enabled", "adaptive"}
    body.update(sampling_fields(model, stop="stop_sequences", with_thinking=not thinks))
    return SplitBody(fields=body, name="messages", at=0, encoded=turns.encoded)


def beta_headers(body: JsonObject) -> dict[str, str]:
    """Return the header that a body needs: thinking between tool calls must be asked for, unless it is adaptive."""
    thinking = json.as_object(body.get("thinking"))
    asked = thinking.get("type") == "enabled" and "tools" in body
    return {"anthropic-beta": INTERLEAVED} if asked else {}


def _call_id(raw: str) -> str:
    return _ID_REFUSED.sub("_", raw)[:ID_LIMIT]


def _messages(turns: Sequence[TurnMessage]) -> list[JsonValue]:
    """Turns by turns of either side: all that comes from the user's side in a row is one message."""
    messages: list[JsonValue] = []
    asked: list[JsonValue] = []
    shown: list[JsonValue] = []

    def close() -> None:
        if asked or shown:
            messages.append({"role": "user", "content": [*asked, *shown]})
        asked.clear()
        shown.clear()

    for turn in turns:
        match turn:
            case UserMessage(content=content):
                asked.extend(shown)
                shown.clear()
                asked.extend(_user_parts(content))
            case ToolResultMessage():
                result, pictures = _result(turn)
                asked.append(result)
                # An error may hold text only, and every result stands before anything else.
                shown.extend(pictures)
            case AssistantMessage():
                said = [part for part in map(_said, turn.content) if part is not None]
                if said:
                    close()
                    messages.append({"role": "assistant", "content": said})
            case _:
                assert_never(turn)
    close()
    return messages


def _user_parts(content: Sequence[UserContent]) -> list[JsonValue]:
    return [_part(part) for part in content if not isinstance(part, Text) or part.text.strip()]


def _part(part: UserContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(mime=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case File(name=name, mime=mime, data=data):
            source: JsonObject = {"type": "base64", "media_type": mime, "data": data}
            return {"type": "document", "title": name, "source": source}


def _said(part: AssistantContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking(redacted=True, signature=signature):
            return {"type": "redacted_thinking", "data": signature}
        case Thinking(text=text, signature=None):
            # Unsigned, the API refuses it as a thought.
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _result(turn: ToolResultMessage) -> tuple[JsonObject, list[JsonValue]]:
    """Return a result, and the pictures that must follow all results because this one is an error."""
    pictures = [part for part in turn.content if isinstance(part, Image)]
    result: _Json = {"type": "tool_result", "tool_use_id": turn.call_id}
    if turn.is_error:
        result["content"] = result_text(turn.content)
        result["is_error"] = True
        lead: list[JsonValue] = [{"type": "text", "text": IMAGES_LEAD}] if pictures else []
        return result, [*lead, *map(_part, pictures)]
    if pictures:
        result["content"] = _user_parts(turn.content)
    else:
        result["content"] = result_text(turn.content)
    return result, []


def _tool(tool: ToolDeclaration) -> _Json:
    schema: _Json = {"type": "object", "properties": {}}
    schema.update((key, tool.parameters[key]) for key in SCHEMA_KEYS if key in tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _mark(request: ModelRequest, model: ModelInfo) -> JsonObject:
    control = cache_control(
        retention(request, configured_retention(model)), long=takes_long(model, default=True)
    )
    return {} if control is None else {"cache_control": control}


def _mark_last(messages: list[JsonValue], mark: JsonObject) -> None:
    """Have the conversation so far cached, up to the user's last block."""
    last: JsonObject = json.as_object(messages[-1]) if messages else {}
    content = last.get("content")
    if last.get("role") != "user" or not isinstance(content, list):
        return
    if content and isinstance(content[-1], dict):
        content[-1] = {**content[-1], **mark}


def _thinking(request: ModelRequest, model: ModelInfo, *, max_tokens: int) -> JsonObject:
    level = clamp(request.thinking, model)
    if level == "off":
        return {"thinking": {"type": "disabled"}}
    if model.compat.get("forceAdaptiveThinking") is True:
        word = "low" if level == "minimal" else effort(level, model)
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": word},
        }
    tokens = budget(level, max_tokens=max_tokens)
    if not tokens:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}
