"""Files of messages as attachments of prompts: stored beside the sessions, named in the prompt."""

import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from hashlib import sha256
from typing import Final

from agent_core.channels.messaging.port import ChatAttachment, DeliveryError, MessageReader
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import AttachmentRefused, StorageUnavailable
from agent_core.kernel.text import format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.storage.adapters.attachments import Attachments
from agent_core.storage.attachments import IMAGE_TYPES

MOST_FILES: Final = 20
"""Files of one prompt."""
MEMORY_BYTES: Final = 1 << 20
"""A file up to this size stays in memory while it is read."""


class ChatAttachments:
    """Reads files from the platform into the attachments of the user."""

    def __init__(self, reader: MessageReader, open_attachments: Callable[[], Attachments]) -> None:
        """Prepare it.

        Args:
            reader: The platform.
            open_attachments: Opens the attachments of the user as the settings have them; blocking.
        """
        self._reader = reader
        self._open_attachments = open_attachments

    async def blocks(
        self, attachments: Sequence[ChatAttachment]
    ) -> tuple[Sequence[JsonObject], Sequence[str]]:
        """Return the blocks of a prompt for files, and a line for each file that is left out."""
        blocks: list[JsonObject] = []
        problems = [
            f"{attachment.name} was left out: a prompt has at most {MOST_FILES} files."
            for attachment in attachments[MOST_FILES:]
        ]
        for attachment in attachments[:MOST_FILES]:
            try:
                blocks.append(await self._block(attachment))
            except (AttachmentRefused, StorageUnavailable) as error:
                problems.append(f"{attachment.name} was left out: {error}")
            except DeliveryError:
                problems.append(f"{attachment.name} was left out: it could not be read.")
        return blocks, problems

    async def _block(self, attachment: ChatAttachment) -> JsonObject:
        attachments = await run_in_thread(self._open_attachments)
        limit = attachments.limits.file_bytes
        if attachment.size_bytes is not None and attachment.size_bytes > limit:
            message = f"The file is larger than {format_size(limit)}; send a smaller one."
            raise AttachmentRefused(message)
        digest = sha256()
        with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as file:
            async for chunk in self._reader.fetch(attachment, limit_bytes=limit):
                digest.update(chunk)
                _ = await run_in_thread(file.write, chunk)
            _ = file.seek(0)

            async def chunks() -> AsyncGenerator[bytes]:
                while chunk := await run_in_thread(file.read, MEMORY_BYTES):
                    yield chunk

            stored, _ = await attachments.receive(digest.hexdigest(), chunks())
        if stored.mime in IMAGE_TYPES:
            return {"type": "image", "mime": stored.mime, "blob": stored.blob}
        return {
            "type": "file",
            "name": attachment.name or "file",
            "mime": stored.mime,
            "blob": stored.blob,
        }
