"""Messages as the JSON of session files, format version 3.

Reading is lossless: data that a value cannot hold (an unknown block, an unknown field) is returned beside it as
`extra`, and writing the value with its `extra` restores it.
"""

from collections.abc import Sequence

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.messages.block_codec import (
    NOTHING,
    decode_assistant_content,
    decode_user_content,
    encode_blocks,
    put_text,
)
from agent_core.messages.plain_codec import decode_plain, unfinished_of
from agent_core.messages.stop_codec import STOP_NAMES, STOP_REASONS
from agent_core.messages.usage_codec import count, decode_usage, encode_usage, whole_number
from agent_core.messages.values import (
    AssistantMessage,
    BashMessage,
    CustomMessage,
    ToolResultMessage,
    UserContent,
    UserMessage,
)

StorableMessage = UserMessage | AssistantMessage | ToolResultMessage | BashMessage | CustomMessage

_USER_KEYS = frozenset({"role", "content", "timestamp"})
_ASSISTANT_KEYS = _USER_KEYS | {
    "api",
    "provider",
    "model",
    "usage",
    "stopReason",
    "errorMessage",
    "rawStopReason",
    "responseId",
}
_RESULT_KEYS = _USER_KEYS | {
    "toolCallId",
    "toolName",
    "details",
    "isError",
    "durationMs",
    "unfinished",
}
_BASH_KEYS = frozenset(
    {"role", "timestamp", "command", "output", "exitCode", "cancelled", "truncated"}
    | {"fullOutputPath", "excludeFromContext"}
)
_CUSTOM_KEYS = _USER_KEYS | {"customType", "display", "details"}


DecodedMessage = tuple[StorableMessage, JsonObject]
"""A message, and what of its JSON the value does not show."""


def decode_message(raw: JsonObject, *, at_ms: int) -> DecodedMessage | None:
    """Read a stored message; None when its role is not one that we know.

    Args:
        raw: The message's JSON. Content may be a list of blocks, a plain string or null.
        at_ms: The time to use when the message has none.

    Raises:
        ValueError: A field that the message cannot do without is missing or has the wrong type.
    """
    plain = decode_plain(raw)
    return decode_odd(raw, at_ms=at_ms) if plain is None else (plain, NOTHING)


def decode_odd(raw: JsonObject, *, at_ms: int) -> DecodedMessage | None:
    """Do as `decode_message` does, field by field: whatever is odd about the message is kept."""
    match raw.get("role"):
        case "user":
            content, extra = _user_content(raw, fields=_USER_KEYS)
            return UserMessage(content=content, at_ms=_time(raw, at_ms)), extra
        case "assistant":
            return _assistant(raw, at_ms=at_ms)
        case "toolResult":
            return _tool_result(raw, at_ms=at_ms)
        case "bashExecution":
            return _bash(raw, at_ms=at_ms)
        case "custom" | "hookMessage":
            return _custom(raw, at_ms=at_ms)
        case _:
            return None


def encode_message(
    message: StorableMessage, *, extra: JsonObject = NOTHING
) -> dict[str, JsonValue]:
    """Write a message; `extra`, as returned by reading, is restored."""
    match message:
        case UserMessage():
            out = _head("user", encode_blocks(message.content))
        case AssistantMessage():
            out = _encode_assistant(message)
        case ToolResultMessage():
            out = _encode_tool_result(message)
        case BashMessage():
            out = _encode_bash(message)
        case CustomMessage():
            out = _head("custom", encode_blocks(message.content))
            out["customType"] = message.custom_type
            out["display"] = message.display
            if message.details is not None:
                out["details"] = message.details
    out["timestamp"] = message.at_ms
    if extra:
        out.update(extra)
    return out


def _assistant(raw: JsonObject, *, at_ms: int) -> DecodedMessage:
    content, content_whole = decode_assistant_content(raw.get("content"))
    usage, usage_whole = decode_usage(raw.get("usage"))
    stop = _text_or_none(raw, "stopReason")
    message = AssistantMessage(
        content=content,
        api=_text(raw, "api"),
        provider=_text(raw, "provider"),
        model=_text(raw, "model"),
        stop_reason=STOP_REASONS.get(stop or "", "stop"),
        usage=usage,
        error=_text_or_none(raw, "errorMessage"),
        raw_stop_reason=_text_or_none(raw, "rawStopReason"),
        response_id=_text_or_none(raw, "responseId"),
        at_ms=_time(raw, at_ms),
    )
    odd: list[str] = []
    if not content_whole:
        odd.append("content")
    if not usage_whole:
        odd.append("usage")
    if stop is not None and stop not in STOP_REASONS:
        odd.append("stopReason")
    return message, _extra(raw, fields=_ASSISTANT_KEYS, odd=odd)


def _tool_result(raw: JsonObject, *, at_ms: int) -> DecodedMessage:
    content, whole = decode_user_content(raw.get("content"))
    unfinished = unfinished_of(raw.get("unfinished"))
    odd = [] if whole else ["content"]
    if unfinished is None and "unfinished" in raw:
        odd.append("unfinished")
    duration = raw.get("durationMs")
    message = ToolResultMessage(
        call_id=ToolCallId(_needed(raw, "toolCallId")),
        tool_name=_text(raw, "toolName"),
        content=content,
        details=raw.get("details"),
        is_error=raw.get("isError") is True,
        duration_ms=None if duration is None else count(duration),
        unfinished=unfinished,
        at_ms=_time(raw, at_ms),
    )
    return message, _extra(raw, fields=_RESULT_KEYS, odd=odd)


def _bash(raw: JsonObject, *, at_ms: int) -> DecodedMessage:
    code = raw.get("exitCode")
    message = BashMessage(
        command=_needed(raw, "command"),
        output=_text(raw, "output"),
        exit_code=None if code is None else whole_number(code),
        cancelled=raw.get("cancelled") is True,
        truncated=raw.get("truncated") is True,
        full_output=_text_or_none(raw, "fullOutputPath"),
        exclude_from_context=raw.get("excludeFromContext") is True,
        at_ms=_time(raw, at_ms),
    )
    return message, _extra(raw, fields=_BASH_KEYS)


def _custom(raw: JsonObject, *, at_ms: int) -> DecodedMessage:
    content, extra = _user_content(raw, fields=_CUSTOM_KEYS)
    message = CustomMessage(
        custom_type=_text(raw, "customType"),
        content=content,
        display=raw.get("display") is not False,
        details=raw.get("details"),
        at_ms=_time(raw, at_ms),
    )
    return message, extra


def _user_content(
    raw: JsonObject, *, fields: frozenset[str]
) -> tuple[tuple[UserContent, ...], JsonObject]:
    content, whole = decode_user_content(raw.get("content"))
    return content, _extra(raw, fields=fields, odd=() if whole else ("content",))


def _extra(raw: JsonObject, *, fields: frozenset[str], odd: Sequence[str] = ()) -> JsonObject:
    if not odd and fields.issuperset(raw):
        return NOTHING
    return {key: value for key, value in raw.items() if key not in fields or key in odd}


def _head(role: str, content: list[JsonValue]) -> dict[str, JsonValue]:
    return {"role": role, "content": content}


def _encode_assistant(message: AssistantMessage) -> dict[str, JsonValue]:
    out = _head("assistant", encode_blocks(message.content))
    out["api"] = message.api
    out["provider"] = message.provider
    out["model"] = message.model
    out["usage"] = encode_usage(message.usage)
    out["stopReason"] = STOP_NAMES[message.stop_reason]
    put_text(out, "errorMessage", message.error)
    put_text(out, "rawStopReason", message.raw_stop_reason)
    return put_text(out, "responseId", message.response_id)


def _encode_tool_result(message: ToolResultMessage) -> dict[str, JsonValue]:
    out = _head("toolResult", encode_blocks(message.content))
    out["toolCallId"] = message.call_id
    out["toolName"] = message.tool_name
    out["isError"] = message.is_error
    if message.details is not None:
        out["details"] = message.details
    if message.duration_ms is not None:
        out["durationMs"] = message.duration_ms
    return put_text(out, "unfinished", message.unfinished)


def _encode_bash(message: BashMessage) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {
        "role": "bashExecution",
        "command": message.command,
        "output": message.output,
        "cancelled": message.cancelled,
        "truncated": message.truncated,
    }
    if message.exit_code is not None:
        out["exitCode"] = message.exit_code
    put_text(out, "fullOutputPath", message.full_output)
    if message.exclude_from_context:
        out["excludeFromContext"] = True
    return out


def _time(raw: JsonObject, at_ms: int) -> int:
    value = raw.get("timestamp")
    return value if isinstance(value, int) else at_ms


def _text_or_none(raw: JsonObject, key: str) -> str | None:
    value = raw.get(key)
    if value is None or isinstance(value, str):
        return value
    message = f"the field {key!r} of a message is {value!r:.80}, not a text"
    raise ValueError(message)


def _text(raw: JsonObject, key: str) -> str:
    return _text_or_none(raw, key) or ""


def _needed(raw: JsonObject, key: str) -> str:
    value = _text_or_none(raw, key)
    if value is None:
        message = f"the message lacks its field {key!r}"
        raise ValueError(message)
    return value
