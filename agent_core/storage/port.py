"""The port to where sessions are stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.values import SecretValue, Value
from agent_core.messages import AssistantMessage, UserMessage
from agent_core.transcript import Transcript
from agent_core.transcript.codec import StoredEntry
from agent_core.transcript.entries import AnyEntry, ColdEntry, Header, MessageEntry, WholeEntry


def begins_session(entries: Sequence[AnyEntry]) -> bool:
    """Return whether something was said: until then a session is not worth keeping."""
    return any(
        isinstance(entry, MessageEntry)
        and isinstance(entry.message, UserMessage | AssistantMessage)
        for entry in entries
    )


class SessionSummary(Value, frozen=True, kw_only=True):
    """A stored session, as far as a list shows it."""

    session: SessionId
    location: Path | None
    cwd: str
    created_ms: int
    modified_ms: int
    """Time of the newest words of the user or of a model; without any, when the session was made."""
    messages: int
    title: str | None
    preview: str
    """How the user's first words begin, on one line."""
    model: str | None = None
    """`provider/id` of the model set or heard last."""
    parent: str | None = None
    """Origin of the session, as in its header: the path of a file, or an id."""


class Recovery(Value, frozen=True, kw_only=True):
    """Result of the recovery of a damaged file; empty when the file was intact."""

    torn_tail: Path | None = None
    """Where the cut-off fragment of an unfinished last line was kept."""
    skipped_lines: tuple[int, ...] = ()
    """Line numbers (from 1) in the middle that are no entries; they hide only themselves."""
    patched_lines: tuple[int, ...] = ()
    """Line numbers with halves of characters, which are shown as U+FFFD; the file keeps them."""
    loose: tuple[EntryId, ...] = ()
    """Entries whose parent is nowhere in the file, or that follow themselves in a circle."""


class Attachment(Value, frozen=True, kw_only=True):
    """Bytes that are stored."""

    blob: str
    """SHA-256 of the bytes, in hexadecimal digits."""
    mime: str
    """Media type, as the bytes show it."""
    size: int
    """In bytes."""


class AttachmentBucket(SecretValue, frozen=True, kw_only=True):
    """A bucket of an S3-compatible store for the attachments of one user."""

    hidden: ClassVar = frozenset({"env"})

    url: str
    """`s3://BUCKET/PREFIX`; the prefix may be left out."""
    endpoint: str | None = None
    """Address of the store; None: that of the environment, else AWS."""
    region: str | None = None
    env: Mapping[str, str]
    """Environment with the credentials."""


class AttachmentStore(Protocol):
    """Bytes under their hash. Blocking; hashes, types and limits are checked by the caller."""

    def get(self, blob: str, *, most: int) -> bytes | None:
        """Return what is stored under a hash, and no more than `most` bytes of it; None: nothing.

        Raises:
            StorageUnavailable: The store cannot be reached, or refuses it.
        """
        ...

    def put(self, attachment: Attachment, file: Path) -> bool:
        """Store the bytes of a file, which the caller has checked and no longer needs.

        Returns:
            Whether they are new.

        Raises:
            OSError, StorageUnavailable: They could not be stored.
        """
        ...

    def renew(self, attachment: Attachment, data: bytes, /) -> None:
        """Keep bytes as long as those that were just stored; store them if they are not there.

        Raises:
            StorageUnavailable: They could not be stored.
        """
        ...

    def link(self, blob: str, lifetime_s: float, /) -> str | None:
        """Return an address under which anyone reads the bytes for a time; None: there is none.

        Raises:
            StorageUnavailable: The store cannot be reached, or refuses it.
        """
        ...

    def unused_since(self, limit_s: float) -> Iterator[str]:
        """Yield the hashes of what was last stored or renewed before a Unix time, in seconds.

        Raises:
            StorageUnavailable: The store cannot be reached, or refuses it.
        """
        ...

    def remove(self, blob: str, *, unused_since_s: float) -> bool:
        """Remove bytes, unless they were renewed meanwhile; return whether they were removed.

        Raises:
            StorageUnavailable: The store cannot be reached, or refuses it.
        """
        ...


class SessionAttachments(Protocol):
    """The attachments of one session."""

    async def keep(self, data: bytes) -> Attachment:
        """Store bytes; the same bytes are stored once, in however many sessions they are.

        Raises:
            AttachmentRefused: They are too large, or of no type that is stored.
            StorageUnavailable: They could not be written.
        """
        ...

    async def claim(self, blob: str) -> Attachment:
        """Return what is stored under a hash, and count it for the session.

        Raises:
            AttachmentRefused: Nothing is, or the session has no room for it.
        """
        ...

    async def read(self, blob: str) -> bytes | None:
        """Return stored bytes; None: they are not there any more, or damaged."""
        ...


class SessionLog(Protocol):
    """One session, open for writing by this process alone.

    Nothing is on disk before the first user message: earlier entries are held back and written with it.
    """

    @property
    def header(self) -> Header:
        """The session's header."""
        ...

    @property
    def location(self) -> Path | None:
        """The file; None in memory. It may not exist yet."""
        ...

    @property
    def attachments(self) -> SessionAttachments | None:
        """Where its attachments are stored; None: nowhere, its entries hold them."""
        ...

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        """Write entries, each whole with one write, in order; when it returns they are in the file.

        Raises:
            StorageUnavailable: None of these entries is in the file (a partly written one was taken back);
                earlier ones are. The same entries may be appended again later.
        """
        ...

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Return what is to be held of entries whose bodies may stay in the file.

        Those that are small, or that are in no file yet, come back as they are.
        """
        ...

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        """Read the bodies of entries back, in the given order.

        Raises:
            StorageUnavailable: The file cannot be read, or holds something else in their places.
        """
        ...

    async def sync(self) -> None:
        """Make everything appended survive a power cut.

        Raises:
            StorageUnavailable: It cannot be said to.
        """
        ...

    async def close(self) -> None:
        """Sync and let go of the lock. Idempotent; never raises."""
        ...


class OpenedSession:
    """A session read from where it is stored, to be written by us."""

    def __init__(
        self, *, log: SessionLog, entries: Iterable[StoredEntry], recovery: Recovery
    ) -> None:
        """Hold what was read.

        Args:
            log: To write to.
            entries: Decoded as far as they had to be; those outside of the model's context of the last entry may be
                without their bodies.
            recovery: Damage that was found.
        """
        self.log = log
        self.transcript = Transcript(entries)
        """The entries; the session goes on with it."""
        self.recovery = recovery

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """All entries in the order of the file."""
        return self.transcript.entries


class StoredSession(Value, frozen=True, kw_only=True):
    """A session as it was at one moment, for reading alone."""

    header: Header
    entries: tuple[WholeEntry, ...]
    recovery: Recovery
    """The unreadable parts; the file was not repaired."""
    location: Path | None


class SessionStore(Protocol):
    """Where sessions are kept."""

    @property
    def tasks(self) -> "SessionStore":
        """Where the sessions of tasks are kept, which no list names."""
        ...

    async def create(self, header: Header) -> SessionLog:
        """Begin a session; nothing is written yet."""
        ...

    async def open(self, session: SessionId) -> OpenedSession:
        """Open a session for writing, taking its lock and cutting a torn tail.

        Raises:
            SessionNotFound: No such session.
            SessionLocked: Another living process has it.
            SessionDamaged: It is no session file, or one of a later version than ours; it stays as it is.
            StorageUnavailable: It cannot be read or written.
        """
        ...

    async def read(self, session: SessionId) -> StoredSession:
        """Read a session whoever writes it meanwhile: nothing is locked, nothing put right.

        Raises:
            SessionNotFound: No such session.
            SessionDamaged: It is no session file.
            StorageUnavailable: It cannot be read.
        """
        ...

    async def delete(self, session: SessionId) -> None:
        """Remove a session and what lies beside it for good.

        Raises:
            SessionNotFound: No such session.
            SessionLocked: A living process writes it.
            StorageUnavailable: It cannot be removed.
        """
        ...

    async def latest(self, cwd: str) -> SessionId | None:
        """Return the session of that folder with the newest last entry, if there is one."""
        ...

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return stored sessions, newest first; of all folders when none is named."""
        ...
