"""Marks for what may be cached, where Anthropic's models are asked in the words of Chat Completions: pure."""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue, json


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
