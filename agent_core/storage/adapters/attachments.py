"""Attachments as files of their SHA-256's name in one folder beside the sessions, and the removal of unused ones.

The name is the content, and a file gets its name when it is whole: several processes use the folder without a lock.
"""

import codecs
import logging
import os
import re
import secrets
from collections.abc import AsyncIterable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

from agent_core.kernel.errors import (
    AttachmentRefused,
    AttachmentTooLarge,
    StorageUnavailable,
)
from agent_core.kernel.text import format_size
from agent_core.kernel.threads import run_in_thread, uncancelled
from agent_core.storage.adapters.paths import (
    FILE_MODE,
    FOLDER_MODE,
    flush,
    flush_folder,
    make_folder,
)
from agent_core.storage.attachments import (
    SNIFFED_BYTES,
    TEXT,
    AttachmentLimits,
    is_blob,
    type_of,
    untyped,
)
from agent_core.storage.port import Attachment

KEPT_S: Final = 14 * 86_400.0
"""How long an attachment that no session names is kept after it was stored last."""
PARTIAL_S: Final = 86_400.0
"""How long the part of an attachment is kept whose writer was killed."""
_READ_BYTES: Final = 1 << 20
_LONGEST_NAME: Final = 256
"""No reference in a session file is longer."""
_NAMED: Final = re.compile(rb'"blob"\s*:\s*"([0-9a-f]{64})"(?:\s*,\s*"size"\s*:\s*(\d{1,12}))?')
_log = logging.getLogger(__name__)


class AttachmentFolder:
    """The attachments of all sessions. Each is kept once; only the user can read it."""

    def __init__(self, folder: Path, *, limits: AttachmentLimits | None = None) -> None:
        self.limits: Final = limits or AttachmentLimits()
        self._folder = folder

    async def receive(self, blob: str, chunks: AsyncIterable[bytes]) -> tuple[Attachment, bool]:
        """Store bytes while they arrive.

        Args:
            blob: Hash that they must have.
            chunks: The bytes.

        Returns:
            The attachment, and whether it is new.

        Raises:
            AttachmentRefused: They are too large, of no type that is stored, or have another hash.
            StorageUnavailable: They could not be written.
        """
        upload = await run_in_thread(self._begin, blob)
        try:
            async for chunk in chunks:
                if chunk:
                    await run_in_thread(upload.write, chunk)
            return await run_in_thread(upload.finish)
        finally:
            await uncancelled(run_in_thread(upload.discard))

    async def read(self, blob: str) -> tuple[Attachment, bytes] | None:
        """Return stored bytes; None: there are none, or they are damaged."""
        return await run_in_thread(self.read_now, blob)

    def put_now(self, data: bytes) -> Attachment:
        """Store bytes. Blocking; raises as `receive`."""
        upload = self._begin(sha256(data).hexdigest())
        try:
            upload.write(data)
            return upload.finish()[0]
        finally:
            upload.discard()

    def read_now(self, blob: str) -> tuple[Attachment, bytes] | None:
        """Return stored bytes. Blocking."""
        if not is_blob(blob):
            return None
        path = self._path(blob)
        try:
            with os.fdopen(
                os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
            ) as file:
                data = file.read(self.limits.file_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("the attachment %s cannot be read: %s", path, error)
            return None
        if sha256(data).hexdigest() != blob:
            _log.warning("the attachment %s is damaged and is not used", path)
            return None
        mime = type_of(data[:SNIFFED_BYTES]) or TEXT
        return Attachment(blob=blob, mime=mime, size=len(data)), data

    def files(self) -> Iterator[Path]:
        """Yield the file of each attachment. Blocking."""
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if is_blob(path.name):
                yield path

    def touch(self, blob: str) -> None:
        """Keep an attachment as long as one that was just stored. Blocking."""
        with suppress(OSError):
            os.utime(self._path(blob))

    def collect(self, named: Iterable[Path], *, now_s: float) -> int:
        """Remove the attachments that are old and that no session names, and parts of killed writers. Blocking.

        Args:
            named: Files of all sessions. They are read only if there is something old.
            now_s: Unix time.

        Returns:
            The number of removed attachments.
        """
        for partial in self._folder.glob(".*.tmp"):
            if _is_older(partial, now_s - PARTIAL_S):
                partial.unlink(missing_ok=True)
        old = {path.name: path for path in self.files() if _is_older(path, now_s - KEPT_S)}
        for session in named:
            if not old:
                return 0
            for blob in blobs_in(session):
                _ = old.pop(blob, None)
        removed = 0
        for path in old.values():
            # Somebody may have stored it again while the sessions were read.
            if _is_older(path, now_s - KEPT_S):
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _begin(self, blob: str) -> "_Upload":
        if not is_blob(blob):
            message = "An attachment is named by its SHA-256 in 64 lower-case hexadecimal digits."
            raise AttachmentRefused(message)
        is_stored = self.read_now(blob) is not None
        return _Upload(self._folder, self._path(blob), limits=self.limits, is_stored=is_stored)

    def _path(self, blob: str) -> Path:
        return self._folder / blob[:2] / blob


class _Upload:
    """Bytes that are being stored: written to a private file, which gets its name when all have the right hash."""

    def __init__(
        self, folder: Path, path: Path, *, limits: AttachmentLimits, is_stored: bool
    ) -> None:
        self._path = path
        self._limits = limits
        self._is_stored = is_stored
        self._partial = folder / f".{secrets.token_hex(8)}.tmp"
        self._fd = -1
        self._hash = sha256()
        self._size = 0
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True
        # A request whose task is cancelled leaves its thread behind, and discards what that thread may still write.
        self._turn = Lock()
        self._is_over = False

    def write(self, chunk: bytes) -> None:
        """Check and write the next bytes."""
        with self._turn:
            if not self._is_over:
                self._write(chunk)

    def finish(self) -> tuple[Attachment, bool]:
        """Write the name of the file; return whether it is new."""
        with self._turn:
            return self._finish()

    def discard(self) -> None:
        """Remove what is not finished. Idempotent."""
        with self._turn:
            self._is_over = True
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
                with suppress(OSError):
                    self._partial.unlink(missing_ok=True)

    def _write(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self._size += len(chunk)
        self._head += chunk[: SNIFFED_BYTES - len(self._head)]
        self._look(chunk)
        if len(self._head) >= SNIFFED_BYTES:
            _ = self._checked_type()
        if self._is_stored:
            return
        with self._reported():
            if self._fd < 0:
                self._fd = self._opened()
            left = memoryview(chunk)
            while left:
                left = left[os.write(self._fd, left) :]

    def _finish(self) -> tuple[Attachment, bool]:
        self._look(b"", is_last=True)
        attachment = Attachment(blob=self._path.name, mime=self._checked_type(), size=self._size)
        if self._hash.hexdigest() != attachment.blob:
            message = "The bytes do not have the SHA-256 that names them; send them again."
            raise AttachmentRefused(message)
        with self._reported():
            if self._is_stored:
                os.utime(self._path)
                return attachment, False
            flush(self._fd)
            self._path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            _ = self._partial.replace(self._path)
            flush_folder(self._path.parent)
        return attachment, True

    def _look(self, chunk: bytes, *, is_last: bool = False) -> None:
        if not self._is_text or type_of(self._head) is not None:
            return
        try:
            _ = self._decoder.decode(chunk, final=is_last)
        except UnicodeDecodeError:
            self._is_text = False
        self._is_text = self._is_text and b"\0" not in chunk

    def _checked_type(self) -> str:
        mime = type_of(self._head) or (TEXT if self._is_text and self._size else None)
        if mime is None:
            raise untyped()
        self._limits.check(self._size, mime)
        return mime

    def _opened(self) -> int:
        make_folder(self._partial.parent)
        # An older folder may have been left open to others.
        self._partial.parent.chmod(FOLDER_MODE)
        return os.open(
            self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE
        )

    @contextmanager
    def _reported(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            message = (
                f"The attachment could not be stored in {str(self._partial.parent)!r}: {error.strerror or error}; "
                "free some disk space or make the folder writable, then try again."
            )
            raise StorageUnavailable(message) from error


class FolderAttachments:
    """The attachments of one session in the folder of all; see `SessionAttachments`."""

    def __init__(self, folder: AttachmentFolder, session: Path) -> None:
        """Create it.

        Args:
            folder: Of all sessions.
            session: File of the session; it may not exist yet.
        """
        self._folder = folder
        self._session = session
        self._named: dict[str, int] | None = None
        """Sizes of the attachments of the session by hash; None: not read yet."""
        self._turn = Lock()

    async def keep(self, data: bytes) -> Attachment:
        """Store bytes and count them for the session."""
        return await run_in_thread(self._keep, data)

    async def claim(self, blob: str) -> Attachment:
        """Count what is stored already for the session."""
        return await run_in_thread(self._claim, blob)

    async def read(self, blob: str) -> bytes | None:
        """Return stored bytes."""
        found = await self._folder.read(blob)
        return None if found is None else found[1]

    def _keep(self, data: bytes) -> Attachment:
        with self._turn:
            blob = sha256(data).hexdigest()
            self._check_room(blob, len(data))
            attachment = self._folder.put_now(data)
            self._count(attachment)
            return attachment

    def _claim(self, blob: str) -> Attachment:
        with self._turn:
            found = self._folder.read_now(blob)
            if found is None:
                message = f"No attachment {blob[:64]!r} is stored; send its bytes first."
                raise AttachmentRefused(message)
            self._check_room(blob, found[0].size)
            self._folder.touch(blob)
            self._count(found[0])
            return found[0]

    def _check_room(self, blob: str, size: int) -> None:
        if self._named is None:
            self._named = blobs_in(self._session)
        limit, used = self._folder.limits.session_bytes, sum(self._named.values())
        if blob not in self._named and used + size > limit:
            message = (
                f"The session has {format_size(used)} of attachments, and at most {format_size(limit)} are stored for one; "
                "start a new session."
            )
            raise AttachmentTooLarge(message)

    def _count(self, attachment: Attachment) -> None:
        if self._named is not None:
            self._named[attachment.blob] = attachment.size


def blobs_in(session: Path) -> dict[str, int]:
    """Return the attachments that a session file names, with their sizes. Blocking; a file that is not there has none."""
    found: dict[str, int] = {}
    rest = b""
    with suppress(FileNotFoundError), session.open("rb") as file:
        while block := file.read(_READ_BYTES):
            part = rest + block
            for match in _NAMED.finditer(part):
                blob = match[1].decode()
                found[blob] = max(int(match[2] or 0), found.get(blob, 0))
            # A reference may lie across two blocks.
            rest = part[-_LONGEST_NAME:]
    return found


def _is_older(path: Path, limit_s: float) -> bool:
    try:
        return path.stat().st_mtime < limit_s
    except OSError:
        return False
