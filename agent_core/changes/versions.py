"""A file as it was at one moment, and the bytes and the text that it held."""

from anyio import to_thread
from msgspec.structs import replace

from agent_core.changes.ports.blob_store import BlobStore
from agent_core.changes.values import FileVersion
from agent_core.kernel.errors import NotText, StorageError
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.files.text import MARKS, encode_text, sha256_of

MOST_BYTES = 10_485_760
"""Larger files are noted by their hash alone."""


def same_version(one: FileVersion | None, other: FileVersion | None) -> bool:
    """Return whether a file held the same; a buffer's hash and a disk's differ where the encoding is not UTF-8."""
    if one is None or other is None:
        return one is other
    return one.sha256 == other.sha256 or (one.content is not None and one.content == other.content)


def text_of(version: FileVersion, data: bytes) -> str | None:
    """Return the text of a version from its bytes, without a byte order mark; None: it is none."""
    if not version.is_text:
        return None
    if version.bom:
        mark = next((mark for mark, name in MARKS if name == version.encoding), b"")
        data = data.removeprefix(mark)
    try:
        return data.decode(version.encoding)
    except (UnicodeDecodeError, LookupError):
        return None


async def look_at(found: FileText | FileBytes) -> FileVersion:
    """Describe a file as it is now; `content` is the key under which its bytes would be kept."""
    return (await to_thread.run_sync(_described, found))[0]


async def keep(found: FileText | FileBytes, contents: BlobStore) -> FileVersion:
    """Describe a file and keep its bytes: as the disk has them, or would have them if an editor saved now.

    When they are too many, or the disk refuses, they are not kept, and whoever wants to go back there is told: the
    change itself has happened.
    """
    version, data = await to_thread.run_sync(_described, found)
    if len(data) > MOST_BYTES:
        return replace(version, content=None)
    try:
        return replace(version, content=await contents.put(data))
    except StorageError:
        return replace(version, content=None)


def _described(found: FileText | FileBytes) -> tuple[FileVersion, bytes]:
    if isinstance(found, FileBytes):
        version = FileVersion(
            sha256=found.sha256, content=found.sha256, size=len(found.data), is_text=False
        )
        return version, found.data
    encoding, bom = found.encoding, found.bom
    try:
        data = encode_text(found.text, encoding=encoding, bom=bom)
    except NotText:
        # A buffer may hold what its file's encoding cannot.
        data, encoding, bom = found.text.encode(), "utf-8", False
    version = FileVersion(
        sha256=found.sha256,
        content=found.sha256 if found.source == "disk" else sha256_of(data),
        size=len(data),
        encoding=encoding,
        bom=bom,
        saved=not found.dirty,
    )
    return version, data
