"""Attachments under the SHA-256 of their bytes, and the removal of unused ones.

The name is the content, and bytes get their name when they are whole: several processes store without a lock.
"""

import codecs
import logging
import os
import re
import secrets
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

from anyio import to_thread

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
from agent_core.storage.port import Attachment, AttachmentBucket, AttachmentStore

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
    """Attachments as files that only the user can read; see `AttachmentStore`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, blob: str, *, most: int) -> bytes | None:
        """Return the content of a file."""
        path = self._path(blob)
        try:
            with os.fdopen(
                os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
            ) as file:
                return file.read(most)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("the attachment %s cannot be read: %s", path, error)
            return None

    def put(self, attachment: Attachment, file: Path) -> bool:
        """Move a file to its place, unless it is there."""
        path = self._path(attachment.blob)
        if self._holds(attachment):
            os.utime(path)
            return False
        path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
        _ = file.replace(path)
        flush_folder(path.parent)
        return True

    def renew(self, attachment: Attachment, _: bytes, /) -> None:
        """Write the time of a file."""
        with suppress(OSError):
            os.utime(self._path(attachment.blob))

    def link(self, _blob: str, _lifetime_s: float, /) -> None:
        """Return none: a file has no address."""

    def unused_since(self, limit_s: float) -> Iterator[str]:
        """Yield the names of files that are older."""
        for path in self.files():
            if _is_older(path, limit_s):
                yield path.name

    def remove(self, blob: str, *, unused_since_s: float) -> bool:
        """Remove a file that is older."""
        path = self._path(blob)
        if not _is_older(path, unused_since_s):
            return False
        path.unlink(missing_ok=True)
        return True

    def files(self) -> Iterator[Path]:
        """Yield the file of each attachment."""
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            if is_blob(path.name):
                yield path

    def _holds(self, attachment: Attachment) -> bool:
        data = self.get(attachment.blob, most=attachment.size + 1)
        return data is not None and sha256(data).hexdigest() == attachment.blob

    def _path(self, blob: str) -> Path:
        return self._folder / blob[:2] / blob


class Attachments:
    """The attachments of all sessions, each stored once.

    They arrive in the folder beside the sessions. With a bucket they go on into it, and what the folder has from before is read there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        bucket: AttachmentStore | None = None,
        limits: AttachmentLimits | None = None,
    ) -> None:
        """Create it; nothing is made yet.

        Args:
            folder: Beside the sessions.
            bucket: Where new attachments are stored; None: in the folder.
            limits: None: those of the product.
        """
        self.limits: Final = limits or AttachmentLimits()
        self._folder = folder
        self._files = AttachmentFolder(folder)
        self._target: AttachmentStore = bucket or self._files
        self._stores: Sequence[AttachmentStore] = (
            (self._files, bucket) if bucket else (self._files,)
        )

    async def receive(self, blob: str, chunks: AsyncIterable[bytes]) -> tuple[Attachment, bool]:
        """Store bytes while they arrive.

        Args:
            blob: Hash that they must have.
            chunks: The bytes.

        Returns:
            The attachment, and whether it is new.

        Raises:
            AttachmentRefused: They are too large, of no type that is stored, or have another hash.
            StorageUnavailable: They could not be stored.
        """
        upload = self._begin(blob)
        try:
            async for chunk in chunks:
                if chunk:
                    await run_in_thread(upload.write, chunk)
            return await run_in_thread(upload.finish)
        finally:
            await uncancelled(run_in_thread(upload.discard))

    async def read(self, blob: str) -> tuple[Attachment, bytes] | None:
        """Return stored bytes; None: there are none, or they are damaged. Cancelled, it is not waited for.

        Raises:
            StorageUnavailable: The bucket cannot be reached, or refuses it.
        """
        return await to_thread.run_sync(self.read_now, blob, abandon_on_cancel=True)

    def put_now(self, data: bytes) -> Attachment:
        """Store bytes. Blocking; raises as `receive`."""
        upload = self._begin(sha256(data).hexdigest())
        try:
            upload.write(data)
            return upload.finish()[0]
        finally:
            upload.discard()

    def read_now(self, blob: str) -> tuple[Attachment, bytes] | None:
        """Return stored bytes. Blocking; raises as `read`."""
        if not is_blob(blob):
            return None
        for store in self._stores:
            data = store.get(blob, most=self.limits.file_bytes + 1)
            if data is None:
                continue
            if sha256(data).hexdigest() == blob:
                mime = type_of(data[:SNIFFED_BYTES]) or TEXT
                return Attachment(blob=blob, mime=mime, size=len(data)), data
            _log.warning("the attachment %s is damaged in %s and is not used", blob, store)
        return None

    def renew(self, attachment: Attachment, data: bytes) -> None:
        """Keep an attachment that was just read as long as one that was just stored. Blocking.

        Raises:
            StorageUnavailable: It could not be stored.
        """
        self._target.renew(attachment, data)

    def link(self, blob: str, *, lifetime_s: float) -> str | None:
        """Return an address under which anyone reads an attachment for a time; its bytes are not checked. Blocking.

        Returns:
            None: It is not in a bucket.

        Raises:
            StorageUnavailable: The bucket cannot be reached, or refuses it.
        """
        return self._target.link(blob, lifetime_s) if is_blob(blob) else None

    def collect(self, named: Iterable[Path], *, now_s: float) -> int:
        """Remove the attachments that are old and that no session names, and parts of killed writers. Blocking.

        Args:
            named: Files of all sessions. They are read only if there is something old.
            now_s: Unix time.

        Returns:
            The number of removed attachments.

        Raises:
            StorageUnavailable: The bucket cannot be reached, or refuses it.
        """
        for partial in self._folder.glob(".*.tmp"):
            if _is_older(partial, now_s - PARTIAL_S):
                partial.unlink(missing_ok=True)
        limit_s = now_s - KEPT_S
        old = [(store, blob) for store in self._stores for blob in store.unused_since(limit_s)]
        for session in named:
            if not old:
                return 0
            used = blobs_in(session)
            old = [(store, blob) for store, blob in old if blob not in used]
        # Somebody may have stored it again while the sessions were read.
        return sum(store.remove(blob, unused_since_s=limit_s) for store, blob in old)

    def _begin(self, blob: str) -> "_Upload":
        if not is_blob(blob):
            message = "An attachment is named by its SHA-256 in 64 lower-case hexadecimal digits."
            raise AttachmentRefused(message)
        return _Upload(self._folder, blob, target=self._target, limits=self.limits)


def open_attachments(folder: Path, bucket: AttachmentBucket | None) -> Attachments:
    """Return the attachments of a folder, in a bucket if there is one.

    Raises:
        StorageUnavailable: The library for buckets is not installed, or the bucket is not named by `s3://BUCKET`.
    """
    if bucket is None:
        return Attachments(folder)
    from agent_core.storage.adapters.attachment_bucket import open_bucket  # noqa: PLC0415 - an extra

    return Attachments(folder, bucket=open_bucket(bucket, folder))


class _Upload:
    """Bytes that are being stored: written to a private file, which goes to its store when all have the right hash."""

    def __init__(
        self, folder: Path, blob: str, *, target: AttachmentStore, limits: AttachmentLimits
    ) -> None:
        self._blob = blob
        self._target = target
        self._limits = limits
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
        """Hand the file to the store; return whether it is new."""
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
        with self._reported():
            if self._fd < 0:
                self._fd = self._opened()
            left = memoryview(chunk)
            while left:
                left = left[os.write(self._fd, left) :]

    def _finish(self) -> tuple[Attachment, bool]:
        self._look(b"", is_last=True)
        attachment = Attachment(blob=self._blob, mime=self._checked_type(), size=self._size)
        if self._hash.hexdigest() != attachment.blob:
            message = "The bytes do not have the SHA-256 that names them; send them again."
            raise AttachmentRefused(message)
        with self._reported():
            flush(self._fd)
            return attachment, self._target.put(attachment, self._partial)

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


class CountedAttachments:
    """The attachments of one session among those of all, counted in its file; see `SessionAttachments`."""

    def __init__(self, open_all: Callable[[], Attachments], session: Path) -> None:
        """Create it.

        Args:
            open_all: Returns the attachments of all sessions; blocking, called at first use.
            session: File of the session; it may not exist yet.
        """
        self._open_all = open_all
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
        return await to_thread.run_sync(self._read, blob, abandon_on_cancel=True)

    @cached_property
    def _attachments(self) -> Attachments:
        return self._open_all()

    def _read(self, blob: str) -> bytes | None:
        found = self._attachments.read_now(blob)
        return None if found is None else found[1]

    def _keep(self, data: bytes) -> Attachment:
        with self._turn:
            blob = sha256(data).hexdigest()
            self._check_room(blob, len(data))
            attachment = self._attachments.put_now(data)
            self._count(attachment)
            return attachment

    def _claim(self, blob: str) -> Attachment:
        with self._turn:
            found = self._attachments.read_now(blob)
            if found is None:
                message = f"No attachment {blob[:64]!r} is stored; send its bytes first."
                raise AttachmentRefused(message)
            self._check_room(blob, found[0].size)
            self._attachments.renew(*found)
            self._count(found[0])
            return found[0]

    def _check_room(self, blob: str, size: int) -> None:
        if self._named is None:
            self._named = blobs_in(self._session)
        limit, used = self._attachments.limits.session_bytes, sum(self._named.values())
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
