"""Images of a session as attachments: stored on their way into the transcript, read on their way to a model."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.errors import AttachmentRefused, StorageError
from agent_core.kernel.threads import run_in_thread
from agent_core.messages import (
    CustomMessage,
    Image,
    Message,
    Text,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.storage.attachments import (
    IMAGE_TYPES,
    SNIFFED_BYTES,
    AttachmentLimits,
    missing,
    type_of,
)
from agent_core.storage.port import Attachment, SessionAttachments

HELD_CHARS: Final = 48 << 20
"""Most base64 that is held for the next request."""
_SNIFFED_CHARS: Final = SNIFFED_BYTES // 3 * 4


async def stored_prompt(
    content: tuple[UserContent, ...], attachments: SessionAttachments | None
) -> tuple[UserContent, ...]:
    """Return a prompt with its images stored.

    Args:
        content: The prompt. An image of a type that is not stored stays as it is.
        attachments: Where they are stored; None: images stay as they are.

    Raises:
        AttachmentRefused: An image is too large, names nothing that is stored, or names no image.
        StorageUnavailable: An image could not be written.
    """
    return tuple(
        [await _stored(part, attachments) if isinstance(part, Image) else part for part in content]
    )


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


class ImageReader:
    """Reader of the stored images of requests; those of the last request are held for the next one."""

    def __init__(self, attachments: SessionAttachments) -> None:
        self._attachments = attachments
        self._held: Mapping[str, Image] = {}

    async def filled(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages with the bytes of their images, and with a text in the place of each that is missing."""
        used: dict[str, Image] = {}
        filled = tuple([await self._filled(message, used) for message in messages])
        chars = sum(len(image.data) for image in used.values())
        self._held = used if chars <= HELD_CHARS else {}
        return filled

    async def _filled(self, message: Message, used: dict[str, Image]) -> Message:
        match message:
            case UserMessage(content=content) | ToolResultMessage(content=content):
                pass
            case CustomMessage(content=content):
                pass
            case _:
                return message
        if not any(isinstance(part, Image) and part.blob for part in content):
            return message
        return replace(message, content=await self._content(content, used))

    async def _content(
        self, content: Sequence[UserContent], used: dict[str, Image]
    ) -> tuple[UserContent, ...]:
        parts: list[UserContent] = []
        for part in content:
            if isinstance(part, Image) and part.blob is not None:
                found = used.get(part.blob) or await self._read(part, part.blob)
                if isinstance(found, Image):
                    used[part.blob] = found
                parts.append(found)
            else:
                parts.append(part)
        return tuple(parts)

    async def _read(self, image: Image, blob: str) -> Image | Text:
        if (held := self._held.get(blob)) is not None:
            return held
        data = await self._attachments.read(blob)
        if data is None:
            return missing(image)
        return Image(mime=image.mime, data=(await run_in_thread(b64encode, data)).decode("ascii"))
