"""Models behind Mistral's own chat endpoint."""

import re
from collections.abc import Sequence
from hashlib import sha256

from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue, json
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
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, bearer
from agent_core.providers.messages.request_options import (
    LEVEL_MAP,
    TurnMessage,
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
from agent_core.providers.wire.chat.stream import FIELDS, ChunkReader

ID_LENGTH = 9
"""Of a call's id; Mistral refuses every other, and all but letters and digits."""

_ID_TAKEN = re.compile(rf"[A-Za-z0-9]{{{ID_LENGTH}}}")
_Json = dict[str, JsonValue]


class MistralConversations(HttpModel):
    """Client of a server at `<base URL>/v1/chat/completions`, which streams the chunks of Chat Completions."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        base_url = self._model.base_url.rstrip("/").removesuffix("/v1")
        return self._post(
            grant,
            url=f"{base_url}/v1/chat/completions",
            body=request_body(request, self._model),
            key=bearer(grant),
            extra=_affinity(request, self._model),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[ChunkReader, None]:
        return ChunkReader(self._model, clock), None


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    turns = normalise_messages(
        request.messages,
        model,
        call_id=_call_id,
        without_thoughts=request.without_thoughts,
    )
    body: _Json = {
        "model": model.id,
        "messages": _messages(request.system, turns),
        "stream": True,
        "max_tokens": output_limit(request, measured(turns), model),
        **sampling_fields(model),
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if model.reasoning:
        body.update(_thinking(request, model))
    return body


def _affinity(request: ModelRequest, model: ModelInfo) -> dict[str, str]:
    """Return the header that routes the requests of a session to the server that has their beginning in its cache."""
    if not request.session or retention(request, configured_retention(model)) == "none":
        return {}
    return {"x-affinity": request.session}


def _call_id(raw: str) -> str:
    if _ID_TAKEN.fullmatch(raw):
        return raw
    return sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH]


def _messages(system: str, turns: Sequence[TurnMessage]) -> list[JsonValue]:
    messages: list[JsonValue] = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        match turn:
            case UserMessage(content=content):
                if content:
                    messages.append({"role": "user", "content": _content(content)})
            case AssistantMessage():
                said = _assistant(turn)
                if said is not None:
                    messages.append(said)
            case ToolResultMessage():
                messages.append(_result(turn))
    return messages


def _content(content: Sequence[UserContent]) -> JsonValue:
    if all(isinstance(part, Text) for part in content):
        return text_of(tuple(content))
    return [_part(part) for part in content if not isinstance(part, Text) or part.text]


def _part(part: UserContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(mime=mime, data=data):
            return {"type": "image_url", "image_url": f"data:{mime};base64,{data}"}
        case File(name=name):
            return {"type": "text", "text": f"(file {name} omitted)"}


def _assistant(turn: AssistantMessage) -> JsonObject | None:
    """An answer must have words or calls; thoughts alone are refused."""
    calls: list[JsonValue] = [_call(call) for call in turn.tool_calls]
    if not turn.text and not calls:
        return None
    chunks = [_chunk(part) for part in turn.content if isinstance(part, Text | Thinking)]
    said = [chunk for chunk in chunks if chunk is not None]
    thinks = any(isinstance(part, Thinking) for part in turn.content)
    sent: _Json = {"role": "assistant", "content": said if thinks and said else turn.text}
    if calls:
        sent["tool_calls"] = calls
    return sent


def _chunk(part: Text | Thinking) -> JsonValue:
    if not part.text:
        return None
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    thought: _Json = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
    # What servers of other dialects gave is no signature, but a note of ours how to send it back.
    if part.signature and part.signature not in FIELDS and not part.signature.startswith("{"):
        thought["signature"] = part.signature
    return thought


def _call(call: ToolCall) -> JsonObject:
    arguments = json.encode(call.arguments).decode()
    function: _Json = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _result(turn: ToolResultMessage) -> JsonObject:
    content = _content(turn.content)
    return {
        "role": "tool",
        "tool_call_id": turn.call_id,
        "name": turn.tool_name,
        "content": content or result_text(turn.content),
    }


def _tool(tool: ToolDeclaration) -> JsonObject:
    function: _Json = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _thinking(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Models that take degrees have words for them; the others think in a mode of their own."""
    level = clamp(request.thinking, model)
    level_map = json.as_object(model.compat.get(LEVEL_MAP))
    if any(isinstance(word, str) for word in level_map.values()):
        word = effort(level, model)
        return {"reasoning_effort": "none" if word == "off" else word}
    return {} if level == "off" else {"prompt_mode": "reasoning"}
