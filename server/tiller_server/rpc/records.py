"""Messages, models and usage in the form of pi's protocol, which is that of session files (format version 3)."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agent_core.kernel import JsonObject, JsonValue, parse_rfc3339
from agent_core.kernel.json import as_object, as_text
from agent_core.messages import Image, Text, Usage, UserContent
from agent_core.messages.codec import encode_usage

PiRelease = Literal["1.5", "0.73"]
"""Release whose form the records have."""
UNKNOWN: Final = "unknown"
"""Wire format of a model where only its name is known."""


def usage_record(usage: Usage | None) -> dict[str, JsonValue]:
    """Return token counts; an unknown price is 0, as pi has no mark for it."""
    out = encode_usage(usage or Usage())
    _ = out.pop("costUnknown", None)
    return out


def content_record(content: Sequence[UserContent]) -> list[JsonValue]:
    """Return texts and pictures; a file is only named, as pi has none."""
    return [
        {"type": "image", "data": part.data, "mimeType": part.mime}
        if isinstance(part, Image)
        else {
            "type": "text",
            "text": part.text if isinstance(part, Text) else f"(file {part.name})",
        }
        for part in content
    ]


def split_model(ref: str | None) -> tuple[str, str]:
    """Return provider and id of `provider/id`."""
    provider, _, model = (ref or "").partition("/")
    return provider, model


def model_record(entry: JsonObject) -> dict[str, JsonValue]:
    """Return a model of `agent/model/list`. Address and wire format stay with the daemon: they are empty and unknown."""
    prices = as_object(entry.get("prices"))
    levels = entry.get("thinking")
    return {
        "id": split_model(as_text(entry.get("model")))[1],
        "name": entry.get("name"),
        "api": UNKNOWN,
        "provider": entry.get("provider"),
        "baseUrl": "",
        "reasoning": isinstance(levels, Sequence) and any(one != "off" for one in levels),
        "input": ["text", "image"] if entry.get("images") else ["text"],
        "cost": {
            "input": prices.get("in") or 0,
            "output": prices.get("out") or 0,
            "cacheRead": prices.get("cacheRead") or 0,
            "cacheWrite": prices.get("cacheWrite") or 0,
        },
        "contextWindow": entry.get("contextWindow"),
        "maxTokens": entry.get("maxTokens") or 0,
    }


def user_record(
    content: Sequence[UserContent], *, at_ms: int, custom_type: str | None
) -> JsonObject:
    """Return a message of the user, or with `custom_type` one of a program."""
    if custom_type is None:
        return {"role": "user", "content": content_record(content), "timestamp": at_ms}
    return {
        "role": "custom",
        "customType": custom_type,
        "content": content_record(content),
        "display": True,
        "timestamp": at_ms,
    }


def result_record(
    *,
    call: str,
    name: str,
    content: Sequence[UserContent],
    details: JsonValue,
    is_error: bool,
    duration_ms: int | None,
    at_ms: int,
) -> JsonObject:
    """Return a message with the result of a tool call."""
    out: dict[str, JsonValue] = {
        "role": "toolResult",
        "toolCallId": call,
        "toolName": name,
        "content": content_record(content),
    }
    if details is not None:
        out["details"] = details
    out["isError"] = is_error
    if duration_ms is not None:
        out["durationMs"] = duration_ms
    return {**out, "timestamp": at_ms}


def content_of(message: str, images: JsonValue) -> list[JsonValue]:
    """Return the blocks of a prompt.

    Raises:
        ValueError: `images` is not a list of pictures.
    """
    text: JsonObject = {"type": "text", "text": message}
    match images:
        case None:
            return [text]
        case [*pictures]:
            return [text, *map(_picture, pictures)]
        case _:
            problem = "images must be a list"
            raise ValueError(problem)


def _picture(image: JsonValue) -> JsonObject:
    match image:
        case {"data": str(data), "mimeType": str(mime)}:
            return {"type": "image", "data": data, "mime": mime}
        case _:
            problem = 'each of images must be {"type": "image", "data": BASE64, "mimeType": MIME}'
            raise ValueError(problem)


def message_of(entry: JsonObject) -> JsonObject | None:
    """Return the message that the model is shown for an entry of a session file; None: none.

    Args:
        entry: A line of the file.
    """
    match entry:
        case {"type": "message", "message": Mapping() as message}:
            return message
        case {"type": "compaction"}:
            return {
                "role": "compactionSummary",
                "summary": entry.get("summary"),
                "tokensBefore": entry.get("tokensBefore"),
                "timestamp": _time_of(entry),
            }
        case {"type": "branch_summary"}:
            return {
                "role": "branchSummary",
                "summary": entry.get("summary"),
                "fromId": entry.get("fromId"),
                "timestamp": _time_of(entry),
            }
        case {"type": "custom_message"}:
            kept = ("customType", "content", "display", "details")
            return {
                "role": "custom",
                **{name: entry[name] for name in kept if name in entry},
                "timestamp": _time_of(entry),
            }
        case _:
            return None


def _time_of(entry: JsonObject) -> int:
    """Return the time of an entry in Unix milliseconds; 0 where it has none that can be read."""
    try:
        return parse_rfc3339(as_text(entry.get("timestamp")))
    except ValueError:
        return 0
