"""A request in the words of Converse: pure."""

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object
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
    text_of,
)
from agent_core.providers.adapters.bedrock_converse.families import (
    Family,
    caches_tools,
    family_of,
    takes_cache_points,
)
from agent_core.providers.messages.request_options import (
    TurnMessage,
    budget,
    clamp,
    configured_retention,
    effort,
    measured,
    normalise_messages,
    output_limit,
    result_text,
    retention,
    sampling_fields,
)
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration

ID_LIMIT = 64
EMPTY = "<empty>"
"""Blank words are refused, and so is a message without any."""
FORMATS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
CACHE_POINT: JsonObject = {"cachePoint": {"type": "default"}}

_ID_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_Json = dict[str, JsonValue]

INTERLEAVED = "interleaved-thinking-2025-05-14"


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    turns = normalise_messages(
        request.messages,
        model,
        call_id=_call_id,
        without_thoughts=request.without_thoughts,
    )
    family = family_of(model.id)
    # There is no longer time to ask for: `long` is as `short`.
    cached = takes_cache_points(model) and retention(request, configured_retention(model)) != "none"
    max_tokens = output_limit(request, measured(turns), model)
    extra = _extra_fields(request, model, family, max_tokens=max_tokens)
    thinks = as_object(extra.get("thinking")).get("type") in {"enabled", "adaptive"}
    sampling = sampling_fields(model, top_p="topP", stop="stopSequences", with_thinking=not thinks)
    body: _Json = {
        "messages": _messages(turns, family, cached=cached),
        "inferenceConfig": {"maxTokens": max_tokens, **sampling},
    }
    if request.system.strip():
        point = [CACHE_POINT] if cached else []
        body["system"] = [{"text": request.system}, *point]
    tools = [_tool(tool) for tool in request.tools] or _called(turns)
    if tools:
        point = [CACHE_POINT] if cached and caches_tools(family) else []
        body["toolConfig"] = {"tools": [*tools, *point]}
    if extra:
        body["additionalModelRequestFields"] = extra
    return body


def _call_id(raw: str) -> str:
    return _ID_REFUSED.sub("_", raw)[:ID_LIMIT]


def _messages(turns: Sequence[TurnMessage], family: Family, *, cached: bool) -> list[JsonValue]:
    """Turns by turns of either side, for they must alternate: all that one side says in a row is one message."""
    messages: list[JsonValue] = []
    asked: list[JsonValue] = []
    answered: list[JsonValue] = []

    def close(side: list[JsonValue], role: str) -> None:
        if side:
            messages.append({"role": role, "content": [*side]})
        side.clear()

    for turn in turns:
        match turn:
            case UserMessage(content=content):
                close(answered, "assistant")
                asked.extend(_user_parts(content) or ([] if asked else [{"text": EMPTY}]))
            case ToolResultMessage():
                close(answered, "assistant")
                asked.append(_result(turn))
            case AssistantMessage():
                said = [part for part in (_said(part, family) for part in turn.content) if part]
                if said:
                    close(asked, "user")
                    answered.extend(said)
            case _:
                assert_never(turn)
    if asked and cached:
        asked.append(CACHE_POINT)
    close(asked, "user")
    close(answered, "assistant")
    return messages or [{"role": "user", "content": [{"text": EMPTY}]}]


def _user_parts(content: Sequence[UserContent]) -> list[JsonValue]:
    return [_part(part) for part in content if not isinstance(part, Text) or part.text.strip()]


def _part(part: UserContent) -> JsonObject:
    match part:
        case Text(text=text):
            return {"text": text}
        case Image(mime=mime, data=data):
            if mime not in FORMATS:
                return {"text": f"(image omitted: Bedrock takes no {mime})"}
            return {"image": {"format": FORMATS[mime], "source": {"bytes": data}}}
        case File(name=name):
            return {"text": f"(file {name} omitted)"}


def _said(part: AssistantContent, family: Family) -> JsonObject | None:
    match part:
        case Text(text=text):
            return {"text": text} if text.strip() else None
        case Thinking():
            return _thought(part, family)
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}


def _thought(part: Thinking, family: Family) -> JsonObject | None:
    if part.redacted:
        return {"reasoningContent": {"redactedContent": part.signature}}
    if part.signature:
        thought: _Json = {"text": part.text, "signature": part.signature}
        return {"reasoningContent": {"reasoningText": thought}}
    if not part.text.strip():
        return None
    if family == "claude":
        # Unsigned, Claude refuses it as a thought.
        return {"text": part.text}
    return {"reasoningContent": {"reasoningText": {"text": part.text}}}


def _result(turn: ToolResultMessage) -> JsonObject:
    parts = _user_parts(turn.content)
    # Blank text is refused, so that it counts as none.
    pictures = [part for part in turn.content if isinstance(part, Image)]
    lead: list[JsonValue] = (
        [] if text_of(turn.content).strip() else [{"text": result_text(pictures)}]
    )
    result: _Json = {
        "toolUseId": turn.call_id,
        "content": [*lead, *parts],
        "status": "error" if turn.is_error else "success",
    }
    return {"toolResult": result}


def _tool(tool: ToolDeclaration) -> JsonObject:
    # An empty description is refused.
    spec: _Json = {
        "name": tool.name,
        "description": tool.description.strip() or tool.name,
        "inputSchema": {"json": tool.parameters},
    }
    return {"toolSpec": spec}


def _called(turns: Sequence[TurnMessage]) -> list[JsonObject]:
    """Declare the tools that were called: a conversation with calls and no tools is refused."""
    names = dict.fromkeys(
        call.name
        for turn in turns
        if isinstance(turn, AssistantMessage)
        for call in turn.tool_calls
    )
    anything: JsonObject = {"type": "object", "properties": {}}
    return [
        _tool(ToolDeclaration(name=name, description="", parameters=anything)) for name in names
    ]


def _extra_fields(
    request: ModelRequest, model: ModelInfo, family: Family, *, max_tokens: int
) -> JsonObject:
    """Return the fields beyond Converse; empty when there is nothing to ask for."""
    if not model.reasoning:
        return {}
    level = clamp(request.thinking, model)
    match family:
        case "claude":
            return _claude(level, request, model, max_tokens=max_tokens)
        case "gpt-oss" if level != "off":
            return {"reasoning_effort": _word(level, model)}
        case "gpt" if level != "off":
            return {"reasoning": {"effort": _word(level, model)}}
        case _:
            return {}


def _claude(
    level: ThinkingLevel, request: ModelRequest, model: ModelInfo, *, max_tokens: int
) -> JsonObject:
    if model.compat.get("forceAdaptiveThinking") is True:
        if level == "off":
            return {"thinking": {"type": "disabled"}}
        return {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _word(level, model)},
        }
    tokens = budget(level, max_tokens=max_tokens) if level != "off" else 0
    if not tokens:
        return {}
    thinking: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": tokens}}
    return {**thinking, "anthropic_beta": [INTERLEAVED]} if request.tools else thinking


def _word(level: ThinkingLevel, model: ModelInfo) -> str:
    """Return the effort's name; the weakest of ours is none of theirs."""
    return "low" if level == "minimal" else effort(level, model)
