"""A request in the words of Chat Completions: pure."""

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import (
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
from agent_core.providers.adapters.openai_completions.compat import Compat, compat_of
from agent_core.providers.messages.history import EncodedHistory, SplitBody, split_turns
from agent_core.providers.messages.request_options import (
    OPENAI_LONG,
    TurnMessage,
    cache_control,
    clamp,
    effort,
    output_limit,
    result_text,
    retention,
    sampling_fields,
)
from agent_core.providers.model import CacheRetention, ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.chat.stream import replayed

IMAGES_LEAD = "Attached image(s) from tool result:"
ID_LIMIT = 40
ID_HASH = 16
CACHE_KEY_LIMIT = 64

_ID_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_Json = dict[str, JsonValue]


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    return split_body(request, model, None).fields


def split_body(
    request: ModelRequest, model: ModelInfo, history: EncodedHistory | None
) -> SplitBody:
    """Return the body to send, without the messages that are encoded already."""
    compat = compat_of(model)
    turns = split_turns(
        request, model, history, call_id=_call_id, convert=partial(_messages, compat=compat)
    )
    instructions = _instructions(request.system, model, compat)
    level = clamp(request.thinking, model)
    body: _Json = {
        "model": model.id,
        "messages": [*instructions, *turns.rest],
        "stream": True,
        compat.limit_field: output_limit(request, turns.size, model),
        **sampling_fields(model),
    }
    if compat.usage_in_streaming:
        body["stream_options"] = {"include_usage": True}
    if compat.store:
        body["store"] = False
    kept = retention(request, compat.cache_retention)
    if request.session and kept != "none":
        body.update(_caching(request.session, compat, kept))
    if request.tools:
        body["tools"] = [_tool(tool, compat) for tool in request.tools]
    if model.reasoning:
        body.update(_thinking(level, model, compat))
    control = cache_control(kept, long=compat.long_marks) if compat.cache_marks else None
    return SplitBody(
        fields=body if control is None else marked(body, control),
        name="messages",
        at=len(instructions),
        encoded=turns.encoded,
    )


def _instructions(system: str, model: ModelInfo, compat: Compat) -> list[JsonValue]:
    if not system:
        return []
    role = "developer" if model.reasoning and compat.developer_role else "system"
    return [{"role": role, "content": system}]


def _caching(session: str, compat: Compat, kept: CacheRetention) -> JsonObject:
    caching: _Json = {}
    if compat.cache_key:
        caching["prompt_cache_key"] = session[:CACHE_KEY_LIMIT]
    # A server that takes Anthropic's marks is told by them.
    if kept == "long" and compat.long_retention and not compat.cache_marks:
        caching["prompt_cache_retention"] = OPENAI_LONG
    return caching


def _call_id(raw: str) -> str:
    """Make an id that every server of this dialect takes; Responses ids carry an item id behind a bar."""
    first = _ID_REFUSED.sub("_", raw.partition("|")[0])
    if len(first) <= ID_LIMIT:
        return first
    digest = sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{first[: ID_LIMIT - ID_HASH - 1]}_{digest[:ID_HASH]}"


def _messages(turns: Sequence[TurnMessage], compat: Compat) -> list[JsonValue]:
    messages: list[JsonValue] = []
    images: list[Image] = []
    for turn in turns:
        if images and not isinstance(turn, ToolResultMessage):
            messages.append(_shown(images))
            images = []
        match turn:
            case UserMessage(content=content):
                if content:
                    messages.append({"role": "user", "content": _user_content(content)})
            case AssistantMessage():
                said = _assistant(turn, compat)
                if said is not None:
                    messages.append(said)
            case ToolResultMessage():
                messages.append(_result(turn))
                images.extend(part for part in turn.content if isinstance(part, Image))
    if images:
        messages.append(_shown(images))
    return messages


def _user_content(content: Sequence[UserContent]) -> JsonValue:
    match content:
        case [Text(text=text)]:
            return text
        case _ if all(isinstance(part, Text) for part in content):
            return text_of(tuple(content))
        case _:
            return [_part(part) for part in content]


def _part(part: UserContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(mime=mime, data=data):
            return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
        case File(name=name, mime=mime, data=data):
            url = f"data:{mime};base64,{data}"
            return {"type": "file", "file": {"filename": name, "file_data": url}}


def _assistant(turn: AssistantMessage, compat: Compat) -> JsonObject | None:
    texts: list[str] = []
    calls: list[JsonValue] = []
    thoughts: list[Thinking] = []
    for part in turn.content:
        match part:
            case Text(text=text):
                texts.append(text)
            case ToolCall():
                calls.append(_call(part))
            case Thinking():
                thoughts.append(part)
    said: _Json = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        said["tool_calls"] = calls
    elif said["content"] is None:
        return None
    if thoughts:
        said.update(replayed(thoughts))
    if compat.reasoning_on_answers:
        said.setdefault("reasoning_content", "")
    return said


def _call(call: ToolCall) -> JsonObject:
    arguments = json.encode(call.arguments).decode()
    sent: _Json = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    if call.signature:
        sent["extra_content"] = {"google": {"thought_signature": call.signature}}
    return sent


def _result(turn: ToolResultMessage) -> JsonObject:
    text = result_text(turn.content)
    return {"role": "tool", "tool_call_id": turn.call_id, "content": text}


def _shown(images: Sequence[Image]) -> JsonObject:
    """A tool's message holds text only, so its pictures follow in the user's name."""
    parts: list[JsonValue] = [{"type": "text", "text": IMAGES_LEAD}]
    return {"role": "user", "content": [*parts, *(_part(image) for image in images)]}


def _tool(tool: ToolDeclaration, compat: Compat) -> JsonObject:
    function: _Json = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if compat.strict_tools is not None:
        function["strict"] = compat.strict_tools
    return {"type": "function", "function": function}


def _thinking(level: ThinkingLevel, model: ModelInfo, compat: Compat) -> JsonObject:
    on = level != "off"
    word = effort(level, model)
    if word == "minimal" and not compat.minimal_effort:
        word = "low"
    strength: _Json = {"reasoning_effort": word} if on and compat.reasoning_effort else {}
    switch: _Json = {"type": "enabled" if on else "disabled"}
    forms: dict[str, JsonObject] = {
        "openrouter": {"reasoning": {"effort": word if on else "none"}},
        "deepseek": {"thinking": switch, **strength},
        "zai": {"thinking": {**switch, "clear_thinking": False}},
        "qwen": {"enable_thinking": on},
        "qwen-chat-template": {"chat_template_kwargs": {"enable_thinking": on}},
        "chat-template": {"chat_template_kwargs": {"enable_thinking": on}},
        "together": {"reasoning": {"enabled": on}},
    }
    return forms.get(compat.thinking_format, strength)


def marked(body: JsonObject, control: JsonObject) -> JsonObject:
    """Return a body that caches its instructions, with the tools that stand before them, and all that was said."""
    messages = _objects(body.get("messages"))
    said = [number for number, message in enumerate(messages) if message.get("content")]
    instructed = bool(messages) and messages[0].get("role") in ("system", "developer")
    places = {*(said[:1] if instructed else ()), *said[-1:]}
    return {
        **body,
        "messages": [
            _marked_message(message, control) if number in places else message
            for number, message in enumerate(messages)
        ],
    }


def _marked_message(message: JsonObject, control: JsonObject) -> JsonObject:
    content = message.get("content")
    parts: Sequence[JsonObject] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content)
    )
    return {**message, "content": _marked_last(parts, control)}


def _marked_last(objects: Sequence[JsonObject], control: JsonObject) -> list[JsonValue]:
    return [*objects[:-1], {**objects[-1], "cache_control": control}]


def _objects(value: JsonValue) -> list[JsonObject]:
    return [json.as_object(each) for each in value] if isinstance(value, list) else []
