"""A request in Ollama's words: pure."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import (
    AssistantMessage,
    Image,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from agent_core.providers.messages.request_options import (
    LEVEL_MAP,
    TurnMessage,
    clamp,
    measured,
    normalise_messages,
    output_limit,
    result_text,
    sampling_fields,
)
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration

WINDOW = "numCtx"
"""The key in `compat` for the window to load the model with, in tokens; 0: the server's own."""
_Json = dict[str, JsonValue]


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    turns = normalise_messages(
        request.messages,
        model,
        call_id=str,
        without_thoughts=request.without_thoughts,
    )
    options: _Json = {
        "num_predict": output_limit(request, measured(turns), model),
        **sampling_fields(model),
    }
    window = _window(model)
    if window:
        options["num_ctx"] = window
    body: _Json = {
        "model": model.id,
        "messages": _messages(request.system, turns),
        "stream": True,
        # A conversation that does not fit must be told of: left alone, the server forgets its beginning.
        "truncate": False,  # decision 0012
        "shift": False,
        "options": options,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if model.reasoning:
        body["think"] = _think(request, model)
    return body


def _window(model: ModelInfo) -> int:
    """The server's own window is often far smaller than what the model is known for."""
    window = model.compat.get(WINDOW)
    return window if isinstance(window, int) else model.context_window


def _think(request: ModelRequest, model: ModelInfo) -> JsonValue:
    """Models that take degrees have words for them; the others think or do not."""
    level = clamp(request.thinking, model)
    word = json.as_object(model.compat.get(LEVEL_MAP)).get(level)
    return word if isinstance(word, str) else level != "off"


def _messages(system: str, turns: Sequence[TurnMessage]) -> list[JsonValue]:
    messages: list[JsonValue] = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        match turn:
            case UserMessage(content=content):
                if content:
                    messages.append(_with_images("user", text_of(content), content))
            case AssistantMessage():
                said = _assistant(turn)
                if said is not None:
                    messages.append(said)
            case ToolResultMessage(content=content):
                result = _with_images("tool", result_text(content), content)
                messages.append(
                    {**result, "tool_name": turn.tool_name, "tool_call_id": turn.call_id}
                )
    return messages


def _with_images(role: str, text: str, content: Sequence[UserContent]) -> JsonObject:
    images: list[JsonValue] = [part.data for part in content if isinstance(part, Image)]
    said: _Json = {"role": role, "content": text}
    if images:
        said["images"] = images
    return said


def _assistant(turn: AssistantMessage) -> JsonObject | None:
    calls: list[JsonValue] = [_call(call) for call in turn.tool_calls]
    if not turn.text and not calls:
        return None
    said: _Json = {"role": "assistant", "content": turn.text}
    thought = "".join(part.text for part in turn.content if isinstance(part, Thinking))
    if thought:
        said["thinking"] = thought
    if calls:
        said["tool_calls"] = calls
    return said


def _call(call: ToolCall) -> JsonObject:
    function: _Json = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "function": function}


def _tool(tool: ToolDeclaration) -> JsonObject:
    function: _Json = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
