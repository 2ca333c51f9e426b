"""Reads the messages that nearly all are, in a straight line; any other is left to `codec`.

Whole sessions pass through here when they are opened. A message is plain when it holds what its role demands, with the
types that we write, and nothing that its value would not show: so nothing is to be kept beside it.
"""

from collections.abc import Mapping

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.messages.block_codec import (
    decode_assistant_content,
    decode_user_content,
    one_alone,
)
from agent_core.messages.stop_codec import STOP_REASONS
from agent_core.messages.usage_codec import decode_usage, plain_usage
from agent_core.messages.values import (
    AssistantContent,
    AssistantMessage,
    Text,
    ToolResultMessage,
    Unfinished,
    UserContent,
    UserMessage,
)

PlainMessage = UserMessage | AssistantMessage | ToolResultMessage
_UNFINISHED: Mapping[str, Unfinished] = {
    "skipped": "skipped",
    "blocked": "blocked",
    "cancelled": "cancelled",
}
_USER_FIELDS = 3
_ASSISTANT_FIELDS = 8
_RESULT_FIELDS = 6


def decode_plain(raw: JsonObject) -> PlainMessage | None:
    """Read a stored message; None when it is not plain."""
    try:
        role, content, at_ms = raw["role"], raw["content"], raw["timestamp"]
        if type(at_ms) is not int:
            return None
        if role == "assistant":
            return _answer(raw, content, at_ms)
        if role == "toolResult":
            return _result(raw, content, at_ms)
    except KeyError:
        return None
    if role != "user" or len(raw) != _USER_FIELDS:
        return None
    parts = _users_parts(content)
    return None if parts is None else UserMessage(content=parts, at_ms=at_ms)


def _answer(raw: JsonObject, content: JsonValue, at_ms: int) -> AssistantMessage | None:
    api, provider, model, stop = raw["api"], raw["provider"], raw["model"], raw["stopReason"]
    counted = raw["usage"]
    raw_stop, response = raw.get("rawStopReason"), raw.get("responseId")
    # The fields that were found are all that there are.
    if len(raw) != _ASSISTANT_FIELDS + (raw_stop is not None) + (response is not None):
        return None
    if not (isinstance(api, str) and isinstance(provider, str) and isinstance(model, str)):
        return None
    if not (raw_stop is None or isinstance(raw_stop, str)):
        return None
    if not (response is None or isinstance(response, str)):
        return None
    reason = STOP_REASONS.get(stop) if isinstance(stop, str) else None
    parts: tuple[AssistantContent, ...] | None = one_alone(content)
    usage = plain_usage(counted) if isinstance(counted, dict) else None
    parts_whole = usage_whole = True
    if parts is None:
        parts, parts_whole = decode_assistant_content(content)
    if usage is None:
        usage, usage_whole = decode_usage(counted)
    if reason is None or not parts_whole or not usage_whole:
        return None
    return AssistantMessage(
        content=parts,
        api=api,
        provider=provider,
        model=model,
        stop_reason=reason,
        usage=usage,
        error=None,
        raw_stop_reason=raw_stop,
        response_id=response,
        at_ms=at_ms,
    )


def _result(raw: JsonObject, content: JsonValue, at_ms: int) -> ToolResultMessage | None:
    call_id, tool, is_error = raw["toolCallId"], raw["toolName"], raw["isError"]
    details, duration = raw.get("details"), raw.get("durationMs")
    unfinished = unfinished_of(raw.get("unfinished"))
    optional_count = sum(one is not None for one in (details, duration, unfinished))
    if len(raw) != _RESULT_FIELDS + optional_count:
        return None
    if not (isinstance(call_id, str) and isinstance(tool, str) and isinstance(is_error, bool)):
        return None
    if duration is not None and (type(duration) is not int or duration < 0):
        return None
    parts = _users_parts(content)
    if parts is None:
        return None
    return ToolResultMessage(
        call_id=ToolCallId(call_id),
        tool_name=tool,
        content=parts,
        details=details,
        is_error=is_error,
        duration_ms=duration,
        unfinished=unfinished,
        at_ms=at_ms,
    )


def unfinished_of(value: JsonValue) -> Unfinished | None:
    """Read why a call was not done; None for no word, or one that we do not know."""
    return _UNFINISHED.get(value) if isinstance(value, str) else None


def _users_parts(content: JsonValue) -> tuple[UserContent, ...] | None:
    """Read words and pictures; None when the value would not show all that there is."""
    alone = one_alone(content)
    if alone is not None:
        part = alone[0]
        return (part,) if isinstance(part, Text) else None
    parts, whole = decode_user_content(content)
    return parts if whole else None
