"""Import of a session file from elsewhere into a store, as a new session of a workspace."""

from collections.abc import Container
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import Clock, SessionId, new_entry_id, uuid7
from agent_core.kernel.errors import SessionDamaged, StorageUnavailable
from agent_core.kernel.values import Value
from agent_core.storage.adapters.recovery import recover
from agent_core.storage.port import SessionStore, begins_session
from agent_core.transcript.entries import FORMAT_VERSION, AnyEntry, Header

UNNAMED = "the given content"
"""Name in errors of content without a path."""


class ImportResult(Value, frozen=True, kw_only=True):
    """Result of an import."""

    session: SessionId
    entries: int
    skipped_lines: tuple[int, ...] = ()
    """Line numbers (from 1) of the source that are no entries: all that was not taken over."""
    patched_lines: tuple[int, ...] = ()
    """Line numbers with halves of characters, which no JSON may hold: U+FFFD stands for them in the copy."""


class ForeignSession(Value, frozen=True, kw_only=True):
    """A session file from elsewhere, read and brought to today's format."""

    header: Header
    entries: tuple[AnyEntry, ...]
    skipped_lines: tuple[int, ...]
    patched_lines: tuple[int, ...]


async def import_session(
    source: Path | bytes, *, store: SessionStore, cwd: str, clock: Clock
) -> ImportResult:
    """Copy a session file into a workspace: new id, all entries, the source named as its parent.

    The source may be ours or another program's, of format version 1 to 3, and is only read. Cancelled before
    anything was written, nothing is left.

    Args:
        source: The file, or its content.
        store: Gets the copy.
        cwd: The workspace's folder, absolute.
        clock: Gives the new session its time.

    Raises:
        SessionDamaged: It is no session, of a newer version, or nothing was said in it.
        StorageUnavailable: The source cannot be read, or the copy cannot be written; then nothing of it is kept.
    """
    at_ms = clock.now_ms()
    foreign = await to_thread.run_sync(_read, source, at_ms)
    parent = str(source) if isinstance(source, Path) else foreign.header.id
    header = replace(
        foreign.header,
        id=SessionId(uuid7(at_ms)),
        at_ms=at_ms,
        cwd=cwd,
        parent_session=parent,
        version=FORMAT_VERSION,
        # A time that could not be read was kept as it is: it would stand for the new one.
        extra={key: value for key, value in foreign.header.extra.items() if key != "timestamp"},
    )
    log = await store.create(header)
    try:
        await log.append(foreign.entries)
        await log.sync()
    finally:
        await log.close()
    return ImportResult(
        session=header.id,
        entries=len(foreign.entries),
        skipped_lines=foreign.skipped_lines,
        patched_lines=foreign.patched_lines,
    )


def read_foreign(data: bytes, *, name: str, at_ms: int) -> ForeignSession:
    """Read the content of a session file from elsewhere: pure.

    Args:
        data: The whole file.
        name: The name of the content in errors.
        at_ms: The present time, for ids of entries that had none.

    Raises:
        SessionDamaged: The content is not a session, has a newer version, or has no message.
    """
    if not data.strip():
        message = f"{name} is empty: there is no session in it to import"
        raise SessionDamaged(message)

    def new_id(taken: Container[object]) -> str:
        return new_entry_id(taken, at_ms=at_ms)

    found = recover(data, name=name, new_id=new_id)
    if found.header.version > FORMAT_VERSION:
        message = (
            f"{name} is a session of format version {found.header.version}, and {FORMAT_VERSION} is the newest "
            "that can be imported: use a newer Tiller"
        )
        raise SessionDamaged(message)
    if not begins_session(found.entries):
        message = f"{name} is a session in which nothing was said: there is nothing to import"
        raise SessionDamaged(message)
    torn = found.tail is not None and found.tail.fragment != b""
    last = (data.count(b"\n") + 1,) if torn else ()
    return ForeignSession(
        header=found.header,
        entries=found.entries,
        skipped_lines=(*found.skipped_lines, *last),
        patched_lines=found.patched_lines,
    )


def _read(source: Path | bytes, at_ms: int) -> ForeignSession:
    if isinstance(source, bytes):
        return read_foreign(source, name=UNNAMED, at_ms=at_ms)
    try:
        data = source.read_bytes()
    except OSError as error:
        message = f"the file {str(source)!r} could not be read: {error.strerror or error}; name a session file"
        raise StorageUnavailable(message) from error
    return read_foreign(data, name=repr(str(source)), at_ms=at_ms)
