"""Copies of what could be changed in place, so that a hook that does so changes nothing of a session."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    CustomMessage,
    Message,
    ToolCall,
    ToolResultMessage,
)

OneMessage = TypeVar("OneMessage", bound=Message)


def copied(value: JsonValue) -> JsonValue:
    """Copy JSON, however deep."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return copied_object(value)
    return [copied(item) for item in value]


def copied_object(value: JsonObject) -> dict[str, JsonValue]:
    """Copy a JSON object, however deep."""
    return {key: item if isinstance(item, str) else copied(item) for key, item in value.items()}


def own_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Copy the arguments and details that messages hold; their words cannot be changed."""
    return tuple(map(own_message, messages))


def own_message(message: OneMessage) -> OneMessage:
    """Copy the arguments and details that a message holds."""
    match message:
        case AssistantMessage(content=content) if any(isinstance(one, ToolCall) for one in content):
            return _with_content(message, tuple(map(_own_part, content)))
        case ToolResultMessage() | CustomMessage() if message.details is not None:
            return replace(message, details=copied(message.details))
        case _:
            return message


def _own_part(part: AssistantContent) -> AssistantContent:
    if isinstance(part, ToolCall):
        return ToolCall(
            id=part.id,
            name=part.name,
            arguments=copied_object(part.arguments),
            arguments_error=part.arguments_error,
            signature=part.signature,
        )
    return part


def _with_content(
    message: AssistantMessage, content: tuple[AssistantContent, ...]
) -> AssistantMessage:
    # Written out: whole conversations come through here before each request, and `replace` takes four times as long.
    return AssistantMessage(
        content=content,
        api=message.api,
        provider=message.provider,
        model=message.model,
        stop_reason=message.stop_reason,
        usage=message.usage,
        error=message.error,
        raw_stop_reason=message.raw_stop_reason,
        response_id=message.response_id,
        at_ms=message.at_ms,
    )
