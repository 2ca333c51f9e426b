"""A request in the words of the Responses API: pure."""

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import assert_never

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import (
    AssistantMessage,
    File,
    Image,
    Text,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from agent_core.providers.messages.history import EncodedHistory, SplitBody, split_turns
from agent_core.providers.messages.request_options import (
    LEVEL_MAP,
    OPENAI_LONG,
    TurnMessage,
    clamp,
    effort,
    output_limit,
    result_text,
    retention,
    sampling_fields,
)
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.responses.compat import ResponsesCompat
from agent_core.providers.wire.responses.replay import answer_items, is_custom

IMAGES_LEAD = "Attached image(s) from tool result:"
ENCRYPTED = "reasoning.encrypted_content"
LEAST_OUTPUT = 16
"""The API refuses a smaller limit."""
ID_LIMIT = 64
ID_HASH = 16
SESSION_LIMIT = 64

_ID_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_Json = dict[str, JsonValue]


def responses_body(
    request: ModelRequest, facts: ModelInfo, *, compat: ResponsesCompat, model: str
) -> JsonObject:
    """Return the body to send; `model` is the server's own name for the model."""
    return split_body(request, facts, None, compat=compat, model=model).fields


def split_body(
    request: ModelRequest,
    facts: ModelInfo,
    history: EncodedHistory | None,
    *,
    compat: ResponsesCompat,
    model: str,
) -> SplitBody:
    """Return the body to send, without the items that are encoded already."""
    turns = split_turns(
        request, facts, history, call_id=_call_id, convert=partial(_input, compat=compat)
    )
    instructions = _instructions(request.system, facts, compat)
    body: _Json = {"model": model, "input": [*instructions, *turns.rest], "stream": True}
    if compat.store:
        body["store"] = False
    if compat.max_output_tokens:
        body["max_output_tokens"] = max(LEAST_OUTPUT, output_limit(request, turns.size, facts))
    if request.tools:
        body["tools"] = [_tool(tool, compat) for tool in request.tools]
    if facts.reasoning:
        body.update(_reasoning(request, facts, compat))
    body.update(_caching(request, compat))
    body.update(sampling_fields(facts, stop=None))
    return SplitBody(fields=body, name="input", at=len(instructions), encoded=turns.encoded)


def _instructions(system: str, model: ModelInfo, compat: ResponsesCompat) -> list[JsonValue]:
    if not system:
        return []
    role = "developer" if model.reasoning and compat.developer_role else "system"
    return [{"role": role, "content": system}]


def session_headers(request: ModelRequest, compat: ResponsesCompat) -> dict[str, str]:
    """Return the headers by which a provider brings the requests of one session to one machine."""
    session = request.session
    if not session or not session.isascii() or retention(request, compat.cache_retention) == "none":
        return {}
    match compat.session_format:
        case "openai":
            return {"session_id": session, "x-client-request-id": session}
        case "openai-nosession":
            return {"x-client-request-id": session}
        case "openrouter":
            return {"x-session-id": session}
        case _:
            return {}


def _call_id(raw: str) -> str:
    """Make an id that the API takes; in sessions from elsewhere an item id may follow behind a bar."""
    first = _ID_REFUSED.sub("_", raw.partition("|")[0])
    if len(first) <= ID_LIMIT:
        return first
    digest = sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{first[: ID_LIMIT - ID_HASH - 1]}_{digest[:ID_HASH]}"


def _input(turns: Sequence[TurnMessage], compat: ResponsesCompat) -> list[JsonValue]:
    items: list[JsonValue] = []
    images: list[Image] = []
    custom: set[str] = set()
    for turn in turns:
        if images and not isinstance(turn, ToolResultMessage):
            items.append(_shown(images))
            images = []
        match turn:
            case UserMessage(content=content):
                if content:
                    items.append({"role": "user", "content": _user_content(content)})
            case AssistantMessage():
                custom.update(call.id for call in turn.tool_calls if is_custom(call))
                items.extend(answer_items(turn, with_thought_ids=compat.reasoning_ids))
            case ToolResultMessage(call_id=call_id):
                items.append(_result(turn, compat, custom=call_id in custom))
                if not compat.images_in_results:
                    images.extend(part for part in turn.content if isinstance(part, Image))
            case _:
                assert_never(turn)
    if images:
        items.append(_shown(images))
    return items


def _user_content(content: Sequence[UserContent]) -> JsonValue:
    # The plain form where it says all: every server of this dialect takes it.
    if all(isinstance(part, Text) for part in content):
        return text_of(tuple(content))
    return [_part(part) for part in content if not isinstance(part, Text) or part.text]


def _part(part: UserContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case Image(mime=mime, data=data):
            url = f"data:{mime};base64,{data}"
            return {"type": "input_image", "detail": "auto", "image_url": url}
        case File(name=name, mime=mime, data=data):
            url = f"data:{mime};base64,{data}"
            return {"type": "input_file", "filename": name, "file_data": url}


def _result(turn: ToolResultMessage, compat: ResponsesCompat, *, custom: bool) -> JsonObject:
    pictured = any(isinstance(part, Image) for part in turn.content)
    output: JsonValue
    if pictured and compat.images_in_results:
        output = _user_content(turn.content)
    else:
        output = result_text(turn.content)
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return {"type": kind, "call_id": turn.call_id, "output": output}


def _shown(images: Sequence[Image]) -> JsonObject:
    """Pictures of tools, for a server that takes only text as a result."""
    parts: list[JsonValue] = [{"type": "input_text", "text": IMAGES_LEAD}]
    return {"role": "user", "content": [*parts, *(_part(image) for image in images)]}


def _tool(tool: ToolDeclaration, compat: ResponsesCompat) -> JsonObject:
    declared: _Json = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if compat.strict_tools:
        declared["strict"] = False
    return declared


def _reasoning(request: ModelRequest, model: ModelInfo, compat: ResponsesCompat) -> JsonObject:
    level = clamp(request.thinking, model)
    # A model whose effort cannot be set thinks whatever the level is.
    if level == "off" and compat.reasoning_effort:
        mapped = json.as_object(model.compat.get(LEVEL_MAP)).get("off")
        word = mapped if isinstance(mapped, str) else compat.off_effort
        return {"reasoning": {"effort": word}} if word else {}
    reasoning: _Json = {}
    if compat.reasoning_effort:
        reasoning["effort"] = effort(level, model)
    if compat.reasoning_summary:
        reasoning["summary"] = "auto"
    asked: _Json = {"reasoning": reasoning} if reasoning else {}
    if compat.encrypted_reasoning:
        asked["include"] = [ENCRYPTED]
    return asked


def _caching(request: ModelRequest, compat: ResponsesCompat) -> JsonObject:
    kept = retention(request, compat.cache_retention)
    if not request.session or kept == "none":
        return {}
    caching: _Json = {}
    if compat.cache_key:
        caching["prompt_cache_key"] = request.session[:SESSION_LIMIT]
    if kept == "long" and compat.long_retention:
        caching["prompt_cache_retention"] = OPENAI_LONG
    return caching
