"""Contents of messages as Markdown and files; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from agent_core.kernel.json import JsonObject, JsonValue, is_object
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.json_fields import as_object

MessageFileKind = Literal["image", "file"]
_FIXED: Final[Mapping[str, str]] = {"hr": "\n---\n", "img": "", "media": ""}
DEPTH: Final = 12
"""Nesting of a card below which its text is not read."""


class MessageFile(Value, frozen=True, kw_only=True):
    """A file of a message."""

    kind: MessageFileKind
    key: str
    name: str


class MessageContent(Value, frozen=True, kw_only=True):
    """Text and files of a message."""

    text: str = ""
    files: tuple[MessageFile, ...] = ()
    mentioned: frozenset[str] = frozenset()
    """Ids of people and bots that a rich text mentions by themselves."""


def read_content(kind: str, content: JsonObject) -> MessageContent:
    """Return the content of a message of a type; of types without text and files, the name of the type."""
    match kind:
        case "text":
            return MessageContent(text=_text(content.get("text")))
        case "post":
            return _post(content)
        case "image":
            return MessageContent(files=_files("image", content.get("image_key"), None))
        case "file" | "audio" | "media":
            name = content.get("file_name")
            return MessageContent(files=_files("file", content.get("file_key"), name))
        case "interactive":
            return MessageContent(text="\n".join(_card_texts(content, DEPTH)))
        case _:
            return MessageContent(text=f"[{kind or 'message without type'}]")


def _post(content: JsonObject) -> MessageContent:
    # Events have the body alone; what was sent through the API has one for each language.
    if "content" not in content:
        content = as_object(next(filter(is_object, content.values()), None))
    lines: list[str] = []
    files: list[MessageFile] = []
    mentioned: set[str] = set()
    title = _text(content.get("title"))
    for row in _list(content.get("content")):
        parts: list[str] = []
        for entry in _list(row):
            if not is_object(entry):
                continue
            parts.append(_post_text(entry))
            files += _post_files(entry)
            if entry.get("tag") == "at" and isinstance(user := entry.get("user_id"), str):
                mentioned.add(user)
        lines.append("".join(parts))
    text = "\n".join([*([f"**{title}**"] if title else []), *lines]).strip("\n")
    return MessageContent(text=text, files=tuple(files), mentioned=frozenset(mentioned))


def _post_text(entry: JsonObject) -> str:
    text = _text(entry.get("text"))
    match entry.get("tag"):
        case "a":
            return f"[{text}]({_text(entry.get('href'))})"
        case "at":
            # The id is a placeholder, whose name stands in the mentions of the message.
            user = _text(entry.get("user_id"))
            return user if user.startswith("@_") else f"@{_text(entry.get('user_name')) or user}"
        case "code_block":
            return f"\n```{_text(entry.get('language')).lower()}\n{text.rstrip()}\n```\n"
        case "emotion":
            return f":{_text(entry.get('emoji_type'))}:"
        case tag:
            return _FIXED.get(str(tag), text)


def _post_files(entry: JsonObject) -> tuple[MessageFile, ...]:
    match entry.get("tag"):
        case "img":
            return _files("image", entry.get("image_key"), None)
        case "media":
            return _files("file", entry.get("file_key"), entry.get("file_name"))
        case _:
            return ()


def _files(kind: MessageFileKind, key: JsonValue, name: JsonValue) -> tuple[MessageFile, ...]:
    if not isinstance(key, str) or not key or "/" in key:
        return ()
    shown = name if isinstance(name, str) and name else f"{key}.png" if kind == "image" else key
    # A name is no path, also when a sender wants it to be one.
    return (
        MessageFile(kind=kind, key=key, name=shown.replace("\\", "/").rpartition("/")[2] or key),
    )


def _card_texts(value: JsonValue, depth: int) -> Iterator[str]:
    """Yield the texts of a card, in either version of its format."""
    if depth == 0:
        return
    if is_object(value):
        for name in ("title", "content", "text"):
            if isinstance(text := value.get(name), str) and text.strip():
                yield text
        for inner in value.values():
            if not isinstance(inner, str):
                yield from _card_texts(inner, depth - 1)
    else:
        for inner in _list(value):
            yield from _card_texts(inner, depth - 1)


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
