"""Attachments of stored sessions: written into exports, and the files that may name them. Blocking."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.messages import File, Image, ToolResultMessage, UserContent, UserMessage
from agent_core.storage.adapters.attachments import Attachments
from agent_core.storage.adapters.paths import tasks_folder
from agent_core.storage.attachments import missing
from agent_core.transcript.entries import CustomMessageEntry, MessageEntry, WholeEntry

_REFERENCE: Final = re.compile(
    r'"data":"","mimeType":("[^"\\]*"),"blob":"([0-9a-f]{64})"(?:,"size":\d+)?'
)
"""An image or a file of a line that we wrote."""


def inlined_lines(lines: str, attachments: Attachments) -> str:
    """Return lines of a session file with the bytes of their images; a missing one stays named."""

    def bytes_of(match: re.Match[str]) -> str:
        found = attachments.read_now(match[2])
        return match[0] if found is None else f'"data":"{_base64(found[1])}","mimeType":{match[1]}'

    return _REFERENCE.sub(bytes_of, lines)


def inlined_entries(
    entries: Sequence[WholeEntry], attachments: Attachments
) -> tuple[WholeEntry, ...]:
    """Return entries with the bytes of their images, and with a text in the place of each that is missing."""
    return tuple([_inlined(entry, attachments) for entry in entries])


def _inlined(entry: WholeEntry, attachments: Attachments) -> WholeEntry:
    match entry:
        case MessageEntry(message=UserMessage() | ToolResultMessage() as message):
            message = replace(message, content=_parts(message.content, attachments))
            return replace(entry, message=message)
        case CustomMessageEntry(content=content):
            return replace(entry, content=_parts(content, attachments))
        case _:
            return entry


def _parts(content: Sequence[UserContent], attachments: Attachments) -> tuple[UserContent, ...]:
    return tuple(
        [
            _part(part, part.blob, attachments)
            if isinstance(part, Image | File) and part.blob
            else part
            for part in content
        ]
    )


def _part(part: Image | File, blob: str, attachments: Attachments) -> UserContent:
    found = attachments.read_now(blob)
    if found is None:
        return missing(part)
    return replace(part, data=_base64(found[1]), blob=None, size=None)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def session_files(sessions: Path) -> Iterator[Path]:
    """Yield the files of all sessions and what lies beside them: one of an older format may be put back by hand."""
    for folder in (sessions, tasks_folder(sessions)):
        yield from (path for path in folder.rglob("*") if path.is_file())
