"""Images and files of a session as attachments: stored on their way into the transcript, read on their way to a model."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.errors import (
    AttachmentRefused,
    AttachmentTooLarge,
    StorageError,
)
from agent_core.kernel.text import format_size, one_line
from agent_core.kernel.threads import run_in_thread
from agent_core.messages import (
    CustomMessage,
    File,
    Image,
    Message,
    Text,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.messages.values import PDF_TYPE, TEXT_TYPE
from agent_core.providers import ModelInfo
from agent_core.session.model_selection import is_sent
from agent_core.storage.attachments import (
    IMAGE_TYPES,
    MIB,
    SNIFFED_BYTES,
    AttachmentLimits,
    missing,
    type_of,
    untyped,
)
from agent_core.storage.port import Attachment, SessionAttachments

HELD_CHARS: Final = 48 << 20
"""Most base64 that is held for the next request."""
FILE_BYTES: Final[Mapping[str, int]] = {TEXT_TYPE: 4 * MIB, PDF_TYPE: 20 * MIB}
"""The most bytes of a file of a prompt, by type: a text has to fit into the context, a PDF into the request of a provider."""
LONGEST_NAME: Final = 200
_SNIFFED_CHARS: Final = SNIFFED_BYTES // 3 * 4


async def stored_prompt(
    content: tuple[UserContent, ...], attachments: SessionAttachments | None
) -> tuple[UserContent, ...]:
    """Return a prompt with its images and files stored.

    Args:
        content: The prompt. An image of a type that is not stored stays as it is.
        attachments: Where they are stored; None: they stay as they are.

    Raises:
        AttachmentRefused: An image or a file is too large, names nothing that is stored, or is of another type.
        StorageUnavailable: It could not be written.
    """
    return tuple([await _stored_part(part, attachments) for part in content])


async def _stored_part(part: UserContent, attachments: SessionAttachments | None) -> UserContent:
    match part:
        case Text():
            return part
        case Image():
            return await _stored(part, attachments)
        case File():
            return await _stored_file(part, attachments)


async def stored_result(
    content: tuple[UserContent, ...], attachments: SessionAttachments | None
) -> tuple[UserContent, ...]:
    """Return the result of a tool with its images stored; one that cannot be stays as it is, the result is needed."""
    parts: list[UserContent] = []
    for part in content:
        try:
            stored = await _stored(part, attachments) if isinstance(part, Image) else part
        except (AttachmentRefused, StorageError):
            stored = part
        parts.append(stored)
    return tuple(parts)


async def _stored(image: Image, attachments: SessionAttachments | None) -> Image:
    if image.blob is not None:
        if attachments is None:
            message = "This session is only in memory and has no attachments; send the bytes of the image."
            raise AttachmentRefused(message)
        return _reference(await attachments.claim(image.blob))
    if attachments is None or _type(image.data) not in IMAGE_TYPES:
        return image
    AttachmentLimits().check(len(image.data) // 4 * 3 - 2, "image/png")
    try:
        data = await run_in_thread(_decoded, image.data)
    except ValueError:
        return image
    return _reference(await attachments.keep(data))


async def _stored_file(file: File, attachments: SessionAttachments | None) -> UserContent:
    """Store a file; its type is that of its bytes."""
    name = _name(file.name)
    if file.blob is not None:
        if attachments is None:
            message = (
                f"This session is only in memory and has no attachments; send the bytes of {name}."
            )
            raise AttachmentRefused(message)
        return _file(await attachments.claim(file.blob), name)
    # Before it is decoded: three bytes of four characters.
    _check_file(name, len(file.data) // 4 * 3 - 2, PDF_TYPE)
    try:
        data = await run_in_thread(_decoded, file.data)
    except ValueError as error:
        message = f"{name} is not sent as base64; encode its bytes."
        raise AttachmentRefused(message) from error
    checked = _checked(name, data, file.data)
    return checked if attachments is None else _file(await attachments.keep(data), name)


def _checked(name: str, data: bytes, base64: str) -> Image | File:
    mime = type_of(data[:SNIFFED_BYTES]) or TEXT_TYPE
    if mime in IMAGE_TYPES:
        return Image(mime=mime, data=base64)
    _check_file(name, len(data), mime)
    if mime == TEXT_TYPE and (b"\0" in data or not _is_utf8(data)):
        raise untyped()
    return File(name=name, mime=mime, data=base64)


def _is_utf8(data: bytes) -> bool:
    try:
        _ = data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _file(stored: Attachment, name: str) -> Image | File:
    if stored.mime in IMAGE_TYPES:
        return _reference(stored)
    _check_file(name, stored.size, stored.mime)
    return File(name=name, mime=stored.mime, blob=stored.blob, size=stored.size)


def check_file(name: str, data: bytes) -> None:
    """Check that a prompt takes a file that is about to be stored. Images have the limit of the store.

    Raises:
        AttachmentTooLarge: It is larger than a prompt takes of its type.
    """
    mime = type_of(data[:SNIFFED_BYTES]) or TEXT_TYPE
    if mime not in IMAGE_TYPES:
        _check_file(_name(name), len(data), mime)


def _check_file(name: str, size: int, mime: str) -> None:
    limit = FILE_BYTES.get(mime, 0)
    if size > limit:
        message = f"{name} has {format_size(size)}, and a prompt takes at most {format_size(limit)} of {mime}; name its path instead, or make it smaller."
        raise AttachmentTooLarge(message)


def _name(name: str) -> str:
    """Return the last part of a name, in one line."""
    return one_line(name.replace("\\", "/").rpartition("/")[2])[:LONGEST_NAME].strip() or "file"


def _reference(stored: Attachment) -> Image:
    if stored.mime not in IMAGE_TYPES:
        message = f"The attachment {stored.blob} is of type {stored.mime}, and an image was expected; send a PNG, JPEG, GIF or WebP."
        raise AttachmentRefused(message)
    return Image(mime=stored.mime, blob=stored.blob, size=stored.size)


def _type(data: str) -> str | None:
    try:
        return type_of(b64decode(data[:_SNIFFED_CHARS]))
    except ValueError:
        return None


def _decoded(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError from error


class AttachmentReader:
    """Reader of the stored images and files of requests; those of the last request are held for the next one."""

    def __init__(self, attachments: SessionAttachments) -> None:
        self._attachments = attachments
        self._held: Mapping[str, Image | File] = {}

    async def filled(self, messages: Sequence[Message], facts: ModelInfo) -> tuple[Message, ...]:
        """Return messages with the bytes of what a model is sent, and with a text in the place of each that is missing.

        Args:
            messages: Messages of a request.
            facts: The model.
        """
        used: dict[str, Image | File] = {}
        filled = tuple([await self._filled(message, facts, used) for message in messages])
        chars = sum(len(part.data) for part in used.values())
        self._held = used if chars <= HELD_CHARS else {}
        return filled

    async def _filled(
        self, message: Message, facts: ModelInfo, used: dict[str, Image | File]
    ) -> Message:
        match message:
            case UserMessage(content=content) | ToolResultMessage(content=content):
                pass
            case CustomMessage(content=content):
                pass
            case _:
                return message
        if not any(isinstance(part, Image | File) and part.blob for part in content):
            return message
        return replace(message, content=await self._content(content, facts, used))

    async def _content(
        self, content: Sequence[UserContent], facts: ModelInfo, used: dict[str, Image | File]
    ) -> tuple[UserContent, ...]:
        parts: list[UserContent] = []
        for part in content:
            if isinstance(part, Text) or part.blob is None or not is_sent(part, facts):
                parts.append(part)
                continue
            # The same bytes may have two names.
            key = part.blob if isinstance(part, Image) else f"{part.blob} {part.name}"
            read = used.get(key) or self._held.get(key) or await self._read(part, part.blob)
            if read is None:
                parts.append(missing(part))
            else:
                used[key] = read
                parts.append(read)
        return tuple(parts)

    async def _read(self, part: Image | File, blob: str) -> Image | File | None:
        data = await self._attachments.read(blob)
        if data is None:
            return None
        base64 = (await run_in_thread(b64encode, data)).decode("ascii")
        return replace(part, data=base64, blob=None, size=None)
