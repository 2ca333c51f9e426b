"""Pieces of messages as the JSON blocks of session files, read as a JSON parser gives them (dicts and lists)."""

from collections.abc import Iterable
from types import MappingProxyType

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.messages.values import (
    AssistantContent,
    Image,
    Text,
    Thinking,
    ToolCall,
    UserContent,
)

MessageBlock = UserContent | AssistantContent

NOTHING: JsonObject = MappingProxyType(dict[str, JsonValue]())

_TEXT_KEYS = frozenset({"type", "text", "textSignature"})
_IMAGE_KEYS = frozenset({"type", "data", "mimeType"})
_THINKING_KEYS = frozenset({"type", "thinking", "thinkingSignature", "redacted"})
_CALL_KEYS = frozenset({"type", "id", "name", "arguments", "argumentsError", "thoughtSignature"})
_LEAST = 2
"""Fields of a block that holds its type and what it is about."""
_PLAIN_CALL = 4


def decode_user_content(value: JsonValue) -> tuple[tuple[UserContent, ...], bool]:
    """Read blocks, a plain string or null as words and pictures.

    Returns:
        The content, and whether it shows all that the JSON holds.
    """
    alone = one_alone(value)
    if alone is not None and isinstance(alone[0], Text):
        return (alone[0],), True
    blocks, whole = decode_blocks(value)
    content = tuple([part for part in blocks if isinstance(part, (Text, Image))])
    return content, whole and len(content) == len(blocks)


def decode_assistant_content(value: JsonValue) -> tuple[tuple[AssistantContent, ...], bool]:
    """Read blocks, a plain string or null as words, thoughts and tool calls.

    Returns:
        The content, and whether it shows all that the JSON holds.
    """
    alone = one_alone(value)
    if alone is not None:
        return alone, True
    blocks, whole = decode_blocks(value)
    content = tuple([part for part in blocks if not isinstance(part, Image)])
    return content, whole and len(content) == len(blocks)


def one_alone(value: JsonValue) -> tuple[Text | ToolCall] | None:
    """Read a single plain block of words or a single plain call, as most content is; None for anything else."""
    if not isinstance(value, list) or len(value) != 1:
        return None
    raw = value[0]
    if not isinstance(raw, dict):
        return None
    kind = raw.get("type")
    if kind == "text" and len(raw) == _LEAST:
        text = raw.get("text")
        return (Text(text=text),) if isinstance(text, str) else None
    if kind != "toolCall" or len(raw) != _PLAIN_CALL:
        return None
    call_id, name, arguments = raw.get("id"), raw.get("name"), raw.get("arguments")
    if not (isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, dict)):
        return None
    return (ToolCall(id=ToolCallId(call_id), name=name, arguments=arguments),)


def decode_blocks(value: JsonValue) -> tuple[tuple[MessageBlock, ...], bool]:
    """Read content of any kind; blocks that we do not know are left out."""
    if isinstance(value, str):
        return ((Text(text=value),) if value else ()), True
    if value is None:
        return (), True
    if not isinstance(value, list):
        return (), False
    found: list[MessageBlock] = []
    whole = True
    for raw in value:
        part, shown = _block(raw)
        if not shown:
            whole = False
        if part is not None:
            found.append(part)
    return tuple(found), whole


def encode_blocks(content: Iterable[MessageBlock]) -> list[JsonValue]:
    """Write content as a list of blocks."""
    return [_encode_block(part) for part in content]


def put_text(out: dict[str, JsonValue], key: str, value: str | None) -> dict[str, JsonValue]:
    """Set a key when there is a value for it; gives the object back."""
    if value is not None:
        out[key] = value
    return out


def _block(raw: JsonValue) -> tuple[MessageBlock | None, bool]:
    """Read one block; None when it is not one that we know or lacks what it is about."""
    if not isinstance(raw, dict):
        return None, False
    kind = raw.get("type")
    if kind == "text":
        return _text_block(raw)
    if kind == "toolCall":
        return _tool_call(raw)
    if kind == "thinking":
        return _thought(raw)
    if kind == "image":
        data, mime = raw.get("data"), raw.get("mimeType")
        if isinstance(data, str) and isinstance(mime, str):
            return Image(mime=mime, data=data), _IMAGE_KEYS.issuperset(raw)
    return None, False


def _text_block(raw: JsonObject) -> tuple[Text | None, bool]:
    text = raw.get("text")
    if not isinstance(text, str):
        return None, False
    if len(raw) == _LEAST:
        return Text(text=text), True
    signature = raw.get("textSignature")
    if isinstance(signature, str):
        return Text(text=text, signature=signature), _TEXT_KEYS.issuperset(raw)
    return Text(text=text), signature is None and _TEXT_KEYS.issuperset(raw)


def _thought(raw: JsonObject) -> tuple[Thinking | None, bool]:
    text, signature = raw.get("thinking"), raw.get("thinkingSignature")
    if not isinstance(text, str):
        return None, False
    part = Thinking(
        text=text,
        signature=signature if isinstance(signature, str) else None,
        redacted=raw.get("redacted") is True,
    )
    return part, part.signature == signature and _THINKING_KEYS.issuperset(raw)


def _tool_call(raw: JsonObject) -> tuple[ToolCall | None, bool]:
    call_id, name, arguments = raw.get("id"), raw.get("name"), raw.get("arguments")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None, False
    if len(raw) == _PLAIN_CALL and isinstance(arguments, dict):
        return ToolCall(id=ToolCallId(call_id), name=name, arguments=arguments), True
    error, signature = raw.get("argumentsError"), raw.get("thoughtSignature")
    part = ToolCall(
        id=ToolCallId(call_id),
        name=name,
        arguments=arguments if isinstance(arguments, dict) else NOTHING,
        arguments_error=error if isinstance(error, str) else None,
        signature=signature if isinstance(signature, str) else None,
    )
    whole = part.arguments is arguments and part.signature == signature
    return part, whole and part.arguments_error == error and _CALL_KEYS.issuperset(raw)


def _encode_block(part: MessageBlock) -> dict[str, JsonValue]:
    match part:
        case Text():
            return put_text({"type": "text", "text": part.text}, "textSignature", part.signature)
        case Image():
            return {"type": "image", "data": part.data, "mimeType": part.mime}
        case Thinking():
            out: dict[str, JsonValue] = {"type": "thinking", "thinking": part.text}
            put_text(out, "thinkingSignature", part.signature)
            if part.redacted:
                out["redacted"] = True
            return out
        case ToolCall():
            out = {"type": "toolCall", "id": part.id, "name": part.name}
            out["arguments"] = dict(part.arguments)
            put_text(out, "argumentsError", part.arguments_error)
            return put_text(out, "thoughtSignature", part.signature)
