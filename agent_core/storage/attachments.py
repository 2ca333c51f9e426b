"""Limits, types and names of attachments."""

import re
from collections.abc import Mapping
from typing import Final

from agent_core.kernel.errors import AttachmentTooLarge, AttachmentUntyped
from agent_core.kernel.text import format_size
from agent_core.kernel.values import Value
from agent_core.messages import File, Image, Text
from agent_core.messages.values import PDF_TYPE, TEXT_TYPE

MIB: Final = 1 << 20
SNIFFED_BYTES: Final = 16
"""Within so many bytes a file shows its type, except text."""
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
TEXT: Final = TEXT_TYPE
_MARKS: Final[Mapping[bytes, str]] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": PDF_TYPE,
}
_BLOB: Final = re.compile(r"[0-9a-f]{64}")


class AttachmentLimits(Value, frozen=True, kw_only=True):
    """The most bytes of attachments."""

    image_bytes: int = 10 * MIB
    file_bytes: int = 32 * MIB
    session_bytes: int = 256 * MIB
    """Of all attachments that one session names, each counted once."""

    def check(self, size: int, mime: str) -> None:
        """Check the size of one attachment.

        Raises:
            AttachmentTooLarge: It is larger than the limit for its type.
        """
        is_image = mime in IMAGE_TYPES
        limit = self.image_bytes if is_image else self.file_bytes
        if size > limit:
            kind = "image" if is_image else "file"
            message = f"The {kind} is larger than {format_size(limit)}, the limit for an attached {kind}; make it smaller."
            raise AttachmentTooLarge(message)


def is_blob(name: str) -> bool:
    """Return whether a text is a hash in the form in which it names stored bytes."""
    return _BLOB.fullmatch(name) is not None


def type_of(head: bytes) -> str | None:
    """Return the media type that the first bytes show; None: they may be text, or anything else."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for mark, mime in _MARKS.items() if head.startswith(mark)), None)


def untyped() -> AttachmentUntyped:
    """Return the error about bytes of no type that is stored."""
    message = "The file is no PNG, JPEG, GIF, WebP, PDF or UTF-8 text; convert it to one of these."
    return AttachmentUntyped(message)


def missing(part: Image | File) -> Text:
    """Return what stands in the place of an image or a file whose bytes are not there any more."""
    size = "" if part.size is None else f", {format_size(part.size)}"
    kind = "Image" if isinstance(part, Image) else f"File {part.name}"
    return Text(
        text=f"[{kind} omitted: the attached file ({part.mime}{size}) is no longer stored.]"
    )
