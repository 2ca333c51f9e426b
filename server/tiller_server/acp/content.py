"""Content blocks: those of a prompt to blocks of the agent, and content of the agent to blocks of ACP."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.messages import File, Text, UserContent
from agent_core.messages.values import PDF_TYPE
from tiller_server.acp.errors import INVALID_PARAMS, AcpError

LONGEST_NAME: Final = 200


def prompt_content(prompt: JsonValue) -> list[JsonValue]:
    """Return the content of a prompt as blocks of `agent/prompt`.

    Raises:
        AcpError: A block cannot be used.
    """
    if not isinstance(prompt, list | tuple) or not prompt:
        raise AcpError(INVALID_PARAMS, "session/prompt: prompt is a list of content blocks")
    return [_prompt_block(one, number) for number, one in enumerate(prompt)]


def _prompt_block(given: JsonValue, number: int) -> JsonObject:
    where = f"session/prompt: prompt[{number}]"
    block = as_object(given)
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return {"type": "image", "mime": mime, "data": data}
        case {"type": "resource_link", "uri": str(uri)}:
            return _link(uri, as_text(block.get("name")))
        case {"type": "resource", "resource": resource} if is_object(resource):
            return _embedded(resource, where)
        case {"type": "audio"}:
            raise AcpError(INVALID_PARAMS, f"{where}: audio is not supported; send text")
        case _:
            raise AcpError(INVALID_PARAMS, f"{where} is no content block that is supported")


def _link(uri: str, name: str) -> JsonObject:
    if urlsplit(uri).scheme == "file":
        return {"type": "resource", "uri": uri}
    return {"type": "text", "text": f"[{name[:LONGEST_NAME] or uri}]({uri})"}


def _embedded(resource: JsonObject, where: str) -> JsonObject:
    match resource:
        case {"uri": str(uri), "text": str(text)} if urlsplit(uri).scheme == "file":
            return {"type": "resource", "uri": uri, "text": text}
        case {"uri": str(uri), "text": str(text)}:
            return {"type": "text", "text": f"{uri}:\n{text}"}
        case {"blob": str(data), "mimeType": str(mime)} if mime.startswith("image/"):
            return {"type": "image", "mime": mime, "data": data}
        case {"uri": str(uri), "blob": str(data), "mimeType": str(mime)} if (
            mime == PDF_TYPE or mime.startswith("text/")
        ):
            return {"type": "file", "name": _file_name(uri), "mime": mime, "data": data}
        case {"uri": str(uri), "blob": str()}:
            return _link(uri, "")
        case _:
            raise AcpError(INVALID_PARAMS, f"{where}.resource has a uri and a text or blob")


def _file_name(uri: str) -> str:
    return unquote(urlsplit(uri).path).rpartition("/")[2][:LONGEST_NAME] or "file"


def text_block(text: str) -> JsonObject:
    """Return a content block of text."""
    return {"type": "text", "text": text}


def content_block(part: UserContent) -> JsonObject:
    """Return content of the agent as a content block."""
    if isinstance(part, Text):
        return text_block(part.text)
    if isinstance(part, File):
        return text_block(f"(file {part.name})")
    return {"type": "image", "data": part.data, "mimeType": part.mime}


def tool_content(parts: Sequence[UserContent]) -> list[JsonValue]:
    """Return content of the agent as the content of a tool call."""
    return [{"type": "content", "content": content_block(part)} for part in parts]
