"""The stored sessions as front ends see them: listed, searched, read, changed, removed, copied out and in."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.dependencies import outputs_of, remove_outputs
from agent_core.changes.adapters.blob_stores import FolderBlobStore
from agent_core.changes.history import FileHistories
from agent_core.changes.patch import FilePatch, UnpatchableFile, file_patch, git_patch
from agent_core.kernel import Clock, SessionId, uuid7
from agent_core.kernel.errors import (
    IndexUnavailable,
    SessionDamaged,
    SessionNotFound,
    StorageUnavailable,
    UsageError,
)
from agent_core.kernel.json import as_object
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.messages import UserMessage
from agent_core.resources.paths import AppPaths
from agent_core.session.changes.record import recorded_changes
from agent_core.storage import SessionStore, SessionSummary
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.ledger import LedgerFile, SqliteLedger
from agent_core.storage.index import Hit, SessionIndex
from agent_core.storage.ledger import CallRow, CostQuery, CostReport
from agent_core.storage.ledger_import import imported_rows
from agent_core.storage.port import StoredSession
from agent_core.storage.session_import import ImportResult, import_session
from agent_core.transcript import Transcript
from agent_core.transcript.codec import encode_entry, encode_header
from agent_core.transcript.cold_entries import preview_of
from agent_core.transcript.entries import AnyEntry, CustomEntry, Header, MessageEntry

if TYPE_CHECKING:
    from agent_core.storage.adapters.attachments import Attachments

HELD_CHARS = 4_194_304


async def stored_patch(stored: StoredSession, blobs: Path) -> str:
    """Return a patch for git of what the agent changed and was not rejected, as each file was after its last edit.

    Args:
        stored: The session, whole.
        blobs: Where what changed files held is kept, in a folder per session.
    """
    contents = FolderBlobStore(outputs_of(blobs, stored.header.id))
    histories = FileHistories(contents)
    histories.load(recorded_changes(stored.entries))
    root = Path(stored.header.cwd)
    patches: list[FilePatch | UnpatchableFile] = []
    for story in histories.all:
        now = (await histories.replay(story)).now
        if now.first is not None or now.last is not None:
            patches.append(await file_patch(now, root=root, contents=contents))
        histories.trim(HELD_CHARS)
    return await to_thread.run_sync(git_patch, patches)


ExportFormat = Literal["jsonl", "md", "html"]
LIMIT = 50
"""How many sessions a page holds unless another number is asked for."""


class SessionPage(Value, frozen=True, kw_only=True):
    """Some of the sessions, newest first."""

    sessions: tuple[SessionSummary, ...]
    next: str | None
    """Given as cursor, it brings the next page; None: there is none."""


class SessionSearchPage(Value, frozen=True, kw_only=True):
    """Some of what was found, best first."""

    hits: tuple[Hit, ...]
    next: str | None
    """Given as cursor, it brings the next page; None: there is none."""


class SessionLibrary:
    """Operations on stored sessions that do not open them for work."""

    def __init__(
        self,
        store: SessionStore,
        *,
        index: SessionIndex | None,
        clock: Clock,
        redactor: Redactor | None = None,
        outputs: Path | None = None,
        blobs: Path | None = None,
        attachments: "Callable[[Mapping[str, str]], Attachments] | None" = None,
    ) -> None:
        """Create the library; `close` closes the index.

        Args:
            store: Store of the sessions.
            index: None: sessions are listed from the store, and search is not available.
            clock: Source of the time of imported sessions.
            redactor: Removes secrets from exports, also of sessions that others wrote.
            outputs: Folder of complete tool outputs, with one folder per session; None: not kept.
            blobs: The same for former contents of changed files.
            attachments: Returns the attachments of all sessions in an environment; blocking, called at an export. None: entries hold them.
        """
        self._store = store
        self._index = index
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._outputs = outputs
        self._blobs = blobs
        self._attachments = attachments
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Problem of the index met so far, in one sentence; None: none."""
        return self._problem or (self._index.problem if self._index else None)

    async def refresh(self) -> None:
        """Bring the index up to date now, so that the next question is answered at once. Cancellable."""
        if self._index is None:
            return
        try:
            await self._index.refresh()
        except IndexUnavailable as error:
            self._problem = str(error)

    async def list(
        self,
        cwd: str | None = None,
        *,
        query: str | None = None,
        limit: int = LIMIT,
        cursor: str | None = None,
    ) -> SessionPage:
        """Return sessions, newest first; with a query those that hold its words, best first.

        Args:
            cwd: Only those of this folder.
            query: As in `search`; blank is none.
            limit: How many at most.
            cursor: Where an earlier page ended. It holds while sessions come and go.

        Raises:
            UsageError: The limit or cursor cannot be used.
            IndexUnavailable: There is a query and nothing to search with.
        """
        if query is not None and query.strip():
            found = await self.search(query, cwd=cwd, limit=limit, cursor=cursor)
            return SessionPage(sessions=tuple(hit.summary for hit in found.hits), next=found.next)
        _check_limit(limit)
        after = None if cursor is None else _place(cursor)
        rest = [one for one in await self._all(cwd) if after is None or _order(one) < after]
        page = tuple(rest[:limit])
        return SessionPage(sessions=page, next=_cursor(page[-1]) if len(rest) > limit else None)

    async def search(
        self,
        query: str,
        *,
        cwd: str | None = None,
        limit: int = LIMIT,
        cursor: str | None = None,
    ) -> SessionSearchPage:
        """Find sessions by what was said in them.

        Args:
            query: Words, and phrases in double quotes; all must be there. The last word may be a beginning.
            cwd: Only sessions of this folder.
            limit: How many at most.
            cursor: Where an earlier page ended.

        Raises:
            UsageError: The limit or cursor cannot be used.
            IndexUnavailable: There is nothing to search with.
        """
        _check_limit(limit)
        offset = 0 if cursor is None else _number(cursor)
        if self._index is None:
            message = "these sessions have no index: they can be listed, not searched"
            raise IndexUnavailable(message)
        hits = await self._index.search(query, cwd=cwd, limit=limit + 1, offset=offset)
        more = len(hits) > limit
        return SessionSearchPage(hits=hits[:limit], next=str(offset + limit) if more else None)

    async def find(self, part: str) -> SessionSummary:
        """Return the one session whose id begins or ends so.

        Raises:
            SessionNotFound: None does, or several do.
            SessionDamaged: The file of that name is not a session file.
            StorageUnavailable: Its file cannot be read.
        """
        every = await self._all(None) if part else ()
        found = [one for one in every if one.session.startswith(part) or one.session.endswith(part)]
        exact = [one for one in found if one.session == part]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if not found:
            await self._check_readable(SessionId(part))
            message = f"no session's id begins or ends with {part!r}: list the sessions to see which there are"
            raise SessionNotFound(message)
        names = ", ".join(one.session for one in found[:3])
        rest = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004 - as many as above
        message = (
            f"the ids of {len(found)} sessions begin or end with {part!r}: {names}{rest}; "
            "write more of it"
        )
        raise SessionNotFound(message)

    async def read(self, session: SessionId) -> StoredSession:
        """Read a session, also while it is being written.

        Raises:
            SessionNotFound: There is no such session.
            SessionDamaged: It is no session file.
            StorageUnavailable: It cannot be read.
        """
        try:
            return await self._store.read(session)
        except SessionNotFound:
            return await self._store.tasks.read(session)

    async def delete(self, session: SessionId) -> None:
        """Remove a session for good, and with it its tasks, the whole outputs of its tools and what its files held.

        Raises:
            SessionNotFound: There is no such session.
            SessionLocked: A living process writes it.
            StorageUnavailable: It cannot be removed, or what is kept beside it cannot.
        """
        tasks: Sequence[SessionId] = ()
        # What cannot be read can still be removed.
        with suppress(SessionNotFound, SessionDamaged, StorageUnavailable):
            tasks = _tasks_of(await self._store.read(session))
        await self._store.delete(session)
        for task in tasks:
            # One that died before its first prompt was stored has no file.
            with suppress(SessionNotFound):
                await self._store.tasks.delete(task)
        if self._outputs is not None:
            await to_thread.run_sync(remove_outputs, outputs_of(self._outputs, session))
        if self._blobs is not None:
            remove = partial(remove_outputs, what="the older versions of files")
            for one in (session, *tasks):
                await to_thread.run_sync(remove, outputs_of(self._blobs, one))

    async def export(
        self, session: SessionId, how: ExportFormat, *, env: Mapping[str, str]
    ) -> bytes:
        """Return a session as a document: the lines of its file, Markdown of its present branch, or HTML of all of it.

        Lines and HTML hold the images of the session.

        Args:
            session: The session.
            how: The format.
            env: Environment with the credentials of a bucket of attachments.

        Raises:
            SessionNotFound: There is no such session.
            SessionDamaged: It is no session file.
            StorageUnavailable: It, or the bucket of its attachments, cannot be read.
        """
        stored = await self._store.read(session)
        attachments = self._attachments and partial(self._attachments, env)
        return await to_thread.run_sync(document, stored, how, self._redactor, attachments)

    async def patch(self, session: SessionId) -> str:
        """Return what a session changed as a patch for git; empty when it changed nothing.

        Raises:
            SessionNotFound: There is no such session.
            StorageUnavailable: It cannot be read.
        """
        stored = await self.read(session)
        return "" if self._blobs is None else await stored_patch(stored, self._blobs)

    async def import_(self, source: Path | bytes, cwd: str) -> ImportResult:
        """Copy a session file into a folder's sessions, as a new one.

        Raises:
            SessionDamaged: It is no session that can be read, or nothing was said in it.
            StorageUnavailable: It cannot be read, or the copy cannot be written.
        """
        return await import_session(source, store=self._store, cwd=cwd, clock=self._clock)

    async def copy(self, session: SessionId, cwd: str) -> SessionId:
        """Create a session from the current branch of another, also while that one is being written.

        Queued messages stay in the original.

        Args:
            session: The one to copy.
            cwd: The folder that the copy belongs to.

        Raises:
            SessionNotFound: There is no such session.
            SessionDamaged: It is no session file.
            StorageUnavailable: It cannot be read, or the copy cannot be written.
        """
        from agent_core.session.history.branches import fork_writer_for  # noqa: PLC0415 - brings all of a session along

        stored = await self._store.read(session)
        now_ms = self._clock.now_ms()
        parent = str(stored.location) if stored.location else session
        header = Header(id=SessionId(uuid7(now_ms)), at_ms=now_ms, cwd=cwd, parent_session=parent)
        entries = await to_thread.run_sync(_branch_of, stored)
        _ = await fork_writer_for(self._store)(header, entries)
        return header.id

    async def close(self) -> None:
        """Close the index. Idempotent."""
        if self._index is not None:
            await self._index.close()

    async def _check_readable(self, session: SessionId) -> None:
        """Report a session that cannot be read from one that is not there: lists leave out both."""
        with suppress(SessionNotFound):
            _ = await self._store.read(session)

    async def _all(self, cwd: str | None) -> Sequence[SessionSummary]:
        if self._index is None:
            found = await self._store.list(cwd)
        else:
            try:
                found = await self._index.list(cwd)
            except IndexUnavailable as error:
                self._problem = str(error)
                found = await self._store.list(cwd)
        return sorted(found, key=_order, reverse=True)


def unindexed_library(paths: AppPaths, *, clock: Clock) -> SessionLibrary:
    """Return the sessions of a user without an index: for reading single ones; nothing has to be closed."""
    return SessionLibrary(JsonlStore(paths.sessions, clock), index=None, clock=clock)


@asynccontextmanager
async def open_library(
    paths: AppPaths,
    *,
    clock: Clock,
    redactor: Redactor | None = None,
) -> AsyncGenerator[SessionLibrary, None]:
    """Open the sessions of a user; their index is brought up to date in the background until the context is left."""
    # SQLite costs some milliseconds: who lists no sessions does not pay for it.
    from agent_core.storage.adapters.index.sqlite import SqliteIndex  # noqa: PLC0415 - see above

    index = SqliteIndex(paths.sessions, paths.index)
    library = SessionLibrary(
        JsonlStore(paths.sessions, clock),
        index=index,
        clock=clock,
        outputs=paths.outputs,
        blobs=paths.blobs,
        attachments=partial(_attachments, paths),
        redactor=redactor,
    )
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(library.refresh)
        try:
            yield library
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            failure = error
        finally:
            group.cancel_scope.cancel()
            await library.close()
    if failure is not None:
        raise failure


def _attachments(paths: AppPaths, env: Mapping[str, str]) -> "Attachments":
    from agent_core.assembly.storage.attachments import UserAttachments  # noqa: PLC0415 - only exports need them

    return UserAttachments(paths, env).now()


def _tasks_of(stored: StoredSession) -> Sequence[SessionId]:
    from agent_core.session.history.entries import TASK  # noqa: PLC0415 - brings all of a session along

    entries = (one for one in stored.entries if isinstance(one, CustomEntry))
    data = [as_object(one.data) for one in entries if one.custom_type == TASK]
    return [SessionId(str(one["session"])) for one in data if "session" in one]


def _branch_of(stored: StoredSession) -> tuple[AnyEntry, ...]:
    from agent_core.session.history.entries import fork_entries, labels_of  # noqa: PLC0415 - as above

    whole = {entry.id: entry for entry in stored.entries}
    path = [whole[entry.id] for entry in Transcript(stored.entries).path()]
    return fork_entries(path, labels=labels_of(stored.entries))


def document(
    stored: StoredSession,
    how: ExportFormat,
    redactor: Redactor,
    attachments: "Callable[[], Attachments] | None",
) -> bytes:
    """Return a session as a document. Blocking.

    Args:
        stored: The session.
        how: The format.
        redactor: Removes secrets.
        attachments: Opens the stored images, which lines and HTML then hold; None: they stay references.
    """
    # Both formats bring libraries along that nothing else needs.
    from agent_core.session.redaction import redacted  # noqa: PLC0415 - brings all of a session along
    from agent_core.storage.stored_images import inlined_entries, inlined_lines  # noqa: PLC0415 - as below
    from agent_core.transcript.export.html_document import html  # noqa: PLC0415 - see above
    from agent_core.transcript.export.markdown_document import markdown  # noqa: PLC0415 - see above

    if how == "jsonl":
        lines = _lines(stored).decode("utf-8", "surrogateescape").split("\n")
        clean = "\n".join(map(redactor.text, lines))
        if attachments is not None:
            # Redacted first: anything might stand in base64 by chance.
            clean = inlined_lines(clean, attachments())
        return clean.encode("utf-8", "surrogateescape")
    stored = replace(stored, entries=redacted(tuple(stored.entries), redactor))
    if attachments is not None and how == "html":
        entries = inlined_entries(stored.entries, attachments())
        stored = replace(stored, entries=entries)
    transcript = Transcript(stored.entries)
    title = transcript.title or _preview_title(stored)
    if how == "md":
        whole = {entry.id: entry for entry in stored.entries}
        path = [whole[entry.id] for entry in transcript.path()]
        text = markdown(stored.header, path, title=title)
    else:
        text = html(stored.header, stored.entries, transcript.leaf, title=title)
    return text.encode("utf-8", "replace")


def _preview_title(stored: StoredSession) -> str | None:
    """Return the preview of the first user message, shown as the name of a session without a title."""
    said = (
        preview_of(entry)
        for entry in stored.entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
    )
    return next((preview for preview in said if preview), None)


def _lines(stored: StoredSession) -> bytes:
    """Return the file's own whole lines, or, of a session in memory, what they would be."""
    if stored.location is None:
        lines = [encode_header(stored.header), *map(encode_entry, stored.entries)]
        return b"\n".join([*lines, b""])
    try:
        data = stored.location.read_bytes()
    except OSError as error:
        message = f"the session file {str(stored.location)!r} could not be read: {error.strerror or error}"
        raise StorageUnavailable(message) from error
    return data[: data.rfind(b"\n") + 1]


def _check_limit(limit: int) -> None:
    if limit < 1:
        message = f"the limit is {limit}: ask for one session at least"
        raise UsageError(message)


def _order(one: SessionSummary) -> tuple[int, str]:
    return one.modified_ms, one.session


def _cursor(one: SessionSummary) -> str:
    return f"{one.modified_ms}.{one.session}"


def _place(cursor: str) -> tuple[int, str]:
    time, _, session = cursor.partition(".")
    return _number(time), session


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit()):
        message = f"the cursor {cursor!r:.80} is none that was given out: begin without one"
        raise UsageError(message)
    return int(cursor)


async def _import_older(ledger: SqliteLedger, paths: AppPaths, clock: Clock) -> Sequence[str]:
    """Import the usage of session files that are older than the ledger, once; return what prevents it."""
    created_ms = await ledger.created_ms()
    if created_ms is None:
        return ()
    store = JsonlStore(paths.sessions, clock)
    rows: list[CallRow] = []
    for summary in await store.list():
        with suppress(SessionNotFound, SessionDamaged):
            stored = await store.read(summary.session)
            rows.extend(imported_rows(stored, before_ms=created_ms))
    try:
        await ledger.add_imported(rows)
    except StorageUnavailable as error:
        return (str(error),)
    return ()


def ledger_problems(paths: AppPaths) -> Sequence[str]:
    """Return which rows of model calls wait or are missing, one sentence each. Blocking."""
    return LedgerFile(paths.costs).problems()


async def read_costs(paths: AppPaths, query: CostQuery, clock: Clock) -> CostReport:
    """Return sums over the model calls of the user; the first time sessions that are older than the ledger are imported.

    Raises:
        StorageUnavailable: The ledger cannot be read.
    """
    ledger = SqliteLedger(paths.costs)
    try:
        problem = await _import_older(ledger, paths, clock)
        report = await ledger.report(query)
        return replace(report, problems=(*report.problems, *problem))
    finally:
        await to_thread.run_sync(ledger.close)
