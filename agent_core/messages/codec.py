"""Messages as JSON, as session files and events hold them.

The file holds sums that the values compute, and a mark for an unknown price: these are written and checked here.

Reading is lossless: data that a value cannot hold (an unknown block, an unknown field) is returned beside it as
`extra`, and writing the value with its `extra` restores it.
"""

import math
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import threadsafe
from agent_core.messages.stored_value import NOTHING, FieldRepair, chosen, repaired, split, to_json
from agent_core.messages.values import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    Cost,
    CustomMessage,
    File,
    Image,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)

_COST_KEYS = frozenset({*Cost.__struct_encode_fields__, "total"})
_USAGE_KEYS = frozenset({*Usage.__struct_encode_fields__, "totalTokens", "costUnknown"})


def decode_usage(value: JsonValue) -> tuple[Usage, bool]:
    """Read token counts; anything that is no number counts as none.

    Returns:
        The usage, and whether it shows all that the JSON holds.
    """
    usage = read_usage(value)
    if not isinstance(value, dict):
        return usage, value is None
    total, money, cost = usage.total, value.get("cost"), usage.cost
    if not _USAGE_KEYS.issuperset(value) or value.get("totalTokens", total) != total:
        return usage, False
    if cost is None or not isinstance(money, dict) or money.get("total") != cost.total:
        return usage, _is_shown(money)
    return usage, _COST_KEYS.issuperset(money)


def exact_usage(value: JsonValue) -> Usage:
    """Read token counts that hold nothing but what the value shows.

    Raises:
        ValueError: They hold more.
    """
    usage, is_whole = decode_usage(value)
    if not is_whole:
        raise ValueError
    return usage


def read_usage(value: JsonValue) -> Usage:
    """Read token counts; anything that is no number counts as none."""
    if not isinstance(value, dict):
        return Usage()
    try:
        usage = msgspec.convert(value, threadsafe(Usage))
    except msgspec.ValidationError:
        return _repaired_usage(value)
    if usage.cost is None:
        return usage
    if not math.isfinite(usage.cost.total):
        return _repaired_usage(value)
    return replace(usage, cost=None) if "costUnknown" in value else usage


def encode_usage(usage: Usage) -> dict[str, JsonValue]:
    """Write token counts and money.

    Other readers of the format take a cost for granted, so an unknown one is written as zero with a mark.
    """
    cost = usage.cost or Cost()
    out: dict[str, JsonValue] = {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }
    if usage.reasoning:
        out["reasoning"] = usage.reasoning
    out["totalTokens"] = usage.total
    out["cost"] = {
        "input": cost.input,
        "output": cost.output,
        "cacheRead": cost.cache_read,
        "cacheWrite": cost.cache_write,
        "total": cost.total,
    }
    if usage.cost is None:
        out["costUnknown"] = True
    return out


def whole_number(value: JsonValue) -> int:
    """Read a number, rounded towards zero; 0 when it is none."""
    if isinstance(value, int):
        return int(value)
    return int(value) if isinstance(value, float) and math.isfinite(value) else 0


def count(value: JsonValue) -> int:
    """Read how many; 0 when it is no number or below."""
    return max(0, whole_number(value))


def _repaired_usage(raw: JsonObject) -> Usage:
    get, money = raw.get, raw.get("cost")
    return Usage(
        input=count(get("input")),
        output=count(get("output")),
        cache_read=count(get("cacheRead")),
        cache_write=count(get("cacheWrite")),
        reasoning=count(get("reasoning")),
        cost=_cost(money) if isinstance(money, dict) and "costUnknown" not in raw else None,
    )


def _cost(raw: JsonObject) -> Cost:
    return Cost(
        input=_money(raw.get("input")),
        output=_money(raw.get("output")),
        cache_read=_money(raw.get("cacheRead")),
        cache_write=_money(raw.get("cacheWrite")),
    )


def _is_shown(raw: JsonValue) -> bool:
    """Return whether a price shows all that its JSON holds."""
    if not isinstance(raw, dict):
        return raw is None
    if not _COST_KEYS.issuperset(raw):
        return False
    parts = _cost(raw).total
    total = _money(raw.get("total", parts))
    # Sums differ in the last digits by the order of adding.
    return total == parts or math.isclose(total, parts, rel_tol=1e-6, abs_tol=1e-9)


def _money(value: JsonValue) -> float:
    # Whole sessions pass through here: nearly all are plain numbers.
    if type(value) is float and math.isfinite(value):
        return value
    try:
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


MessageBlock = UserContent | AssistantContent

_BLOCKS: Mapping[JsonValue, type[MessageBlock]] = {
    "text": Text,
    "toolCall": ToolCall,
    "thinking": Thinking,
    "image": Image,
    "file": File,
}


def decode_user_content(value: JsonValue) -> tuple[tuple[UserContent, ...], bool]:
    """Read blocks, a plain string or null as words and pictures.

    Returns:
        The content, and whether it shows all that the JSON holds.
    """
    blocks, whole = decode_blocks(value)
    content = tuple([part for part in blocks if isinstance(part, (Text, Image, File))])
    return content, whole and len(content) == len(blocks)


def decode_assistant_content(value: JsonValue) -> tuple[tuple[AssistantContent, ...], bool]:
    """Read blocks, a plain string or null as words, thoughts and tool calls.

    Returns:
        The content, and whether it shows all that the JSON holds.
    """
    blocks, whole = decode_blocks(value)
    content = tuple([part for part in blocks if not isinstance(part, (Image, File))])
    return content, whole and len(content) == len(blocks)


def decode_blocks(value: JsonValue) -> tuple[tuple[MessageBlock, ...], bool]:
    """Read content of any kind; blocks that we do not know are left out."""
    if isinstance(value, str):
        return ((Text(text=value),) if value else ()), True
    if value is None:
        return (), True
    if not isinstance(value, list):
        return (), False
    blocks = [_block(raw) for raw in value]
    found = tuple([part for part, _ in blocks if part is not None])
    return found, all(whole for _, whole in blocks)


def encode_blocks(content: Iterable[MessageBlock]) -> list[JsonValue]:
    """Write content as a list of blocks."""
    return [to_json(part) for part in content]


def _block(raw: JsonValue) -> tuple[MessageBlock | None, bool]:
    """Read one block; None when it is not one that we know or lacks what it is about."""
    kind = raw.get("type") if isinstance(raw, dict) else None
    block = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if block is None or not isinstance(raw, dict):
        return None, False
    try:
        return msgspec.convert(raw, threadsafe(block)), True
    except msgspec.ValidationError:
        return _repaired_block(raw, block)


def _repaired_block(raw: JsonObject, kind: type[MessageBlock]) -> tuple[MessageBlock | None, bool]:
    try:
        part, odd = repaired(raw, kind, _BLOCK_REPAIRS)
    except ValueError:
        return None, False
    return part, not odd


def _optional_text(value: JsonValue) -> tuple[str | None, bool]:
    return (value, True) if isinstance(value, str | None) else (None, False)


_BLOCK_REPAIRS: Mapping[str, FieldRepair] = {
    "textSignature": _optional_text,
    "thinkingSignature": _optional_text,
    "thoughtSignature": _optional_text,
    "argumentsError": _optional_text,
    "redacted": lambda value: (value is True, True),
    "arguments": lambda value: (value, True) if isinstance(value, dict) else ({}, False),
}


StorableMessage = UserMessage | AssistantMessage | ToolResultMessage | BashMessage | CustomMessage

STOP_REASONS: Mapping[JsonValue, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
_STOP_NAMES: Mapping[StopReason, JsonValue] = {
    reason: name for name, reason in STOP_REASONS.items()
}
_UNFINISHED = frozenset({"skipped", "blocked", "cancelled"})
_MESSAGES: Mapping[JsonValue, type[StorableMessage]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "toolResult": ToolResultMessage,
    "bashExecution": BashMessage,
    "custom": CustomMessage,
    "hookMessage": CustomMessage,
}

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
    kind = _MESSAGES.get(str(raw.get("role")))
    if kind is None:
        return None
    fields, extra = split(raw, kind)
    exact = decode_exact(fields)
    return decode_odd(raw, kind, at_ms=at_ms) if exact is None else (exact, extra)


def decode_exact(raw: JsonObject) -> StorableMessage | None:
    """Read a message of which its value shows everything, as nearly all are; None for any other."""
    try:
        return msgspec.convert(prepared(raw), threadsafe(_MESSAGES[raw["role"]]))
    except (KeyError, TypeError, ValueError, msgspec.ValidationError):
        return None


def prepared(raw: JsonValue) -> Mapping[str, object]:
    """Return a message's JSON with the values of the class where the file has others.

    Raises:
        KeyError, TypeError, ValueError: It is not as we write it.
    """
    if not isinstance(raw, dict):
        raise TypeError
    role = raw["role"]
    content = raw.get("content")
    if isinstance(content, str):
        raw = {**raw, "content": [{"type": "text", "text": content}] if content else []}
    if role == "assistant":
        usage = exact_usage(raw["usage"])
        return {**raw, "usage": usage, "stopReason": STOP_REASONS[raw["stopReason"]]}
    if role == "toolResult" and raw.get("unfinished", role) is None:
        raise ValueError
    return raw


def decode_odd(raw: JsonObject, kind: type[StorableMessage], *, at_ms: int) -> DecodedMessage:
    """Do as `decode_message` does, field by field: whatever is odd about the message is kept."""
    stamp = raw.get("timestamp")
    repairs = _ANSWER_REPAIRS if kind is AssistantMessage else _MESSAGE_REPAIRS
    timed = {**raw, "timestamp": int(stamp) if isinstance(stamp, int) else at_ms}
    message, odd = repaired(timed, kind, repairs)
    if isinstance(stamp, bool):
        # JSON's true is an int in Python, and is written back as true.
        message = replace(message, at_ms=stamp)
    return message, chosen(raw, odd)


def encode_message(
    message: StorableMessage, *, extra: JsonObject = NOTHING
) -> dict[str, JsonValue]:
    """Write a message; `extra`, as returned by reading, is restored."""
    out = completed(to_json(message), message)
    if extra:
        out.update(extra)
    return out


def completed(out: dict[str, JsonValue], message: StorableMessage) -> dict[str, JsonValue]:
    """Set the fields of a message's JSON that its class does not have in the form of the file."""
    content = out.get("content")
    if isinstance(content, tuple):
        out["content"] = list(content)
    if "usage" in out and isinstance(message, AssistantMessage):
        out["usage"] = encode_usage(message.usage)
        out["stopReason"] = _STOP_NAMES[message.stop_reason]
    return out


def _stop_reason(value: JsonValue) -> tuple[StopReason, bool]:
    if not isinstance(value, str | None):
        message = f"the field 'stopReason' of a message is {value!r:.80}, not a text"
        raise ValueError(message)  # noqa: TRY004 - the data is wrong, not the caller
    return STOP_REASONS.get(value, "stop"), value is None or value in STOP_REASONS


def _unfinished(value: JsonValue) -> tuple[JsonValue, bool]:
    is_valid = isinstance(value, str) and value in _UNFINISHED
    return value if is_valid else None, is_valid


def _text(value: JsonValue) -> tuple[JsonValue, bool]:
    return "" if value is None else value, True


def _flag(value: JsonValue) -> tuple[bool, bool]:
    return value is True, True


_MESSAGE_REPAIRS: Mapping[str, FieldRepair] = {
    "content": decode_user_content,
    "api": _text,
    "provider": _text,
    "model": _text,
    "usage": decode_usage,
    "stopReason": _stop_reason,
    "toolName": _text,
    "isError": _flag,
    "durationMs": lambda value: (None if value is None else count(value), True),
    "unfinished": _unfinished,
    "customType": _text,
    "display": lambda value: (value is not False, True),
    "output": _text,
    "cancelled": _flag,
    "truncated": _flag,
    "exitCode": lambda value: (None if value is None else whole_number(value), True),
    "excludeFromContext": _flag,
}
"""How fields are read that are missing or of a wrong type; the message is refused for any other."""
_ANSWER_REPAIRS: Mapping[str, FieldRepair] = {
    **_MESSAGE_REPAIRS,
    "content": decode_assistant_content,
}
