"""The sessions of jobs for the panel of the web page, which only reads here: the methods that it calls, and its event stream.

A worker writes whole entries and no deltas: whenever a session has grown, the stream sends a snapshot, and the panel reads
the newest items again.
"""

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from anyio.to_thread import run_sync
from msgspec.structs import replace

from agent_core.events import ChangeCounts, SessionConfig, UsageReport
from agent_core.kernel import Clock, JsonObject, JsonValue, SessionId
from agent_core.kernel.errors import SessionNotFound
from agent_core.kernel.json import encode
from agent_core.messages import AssistantMessage
from agent_core.messages.values import total_usage
from agent_core.session import Activities, SessionSnapshot
from agent_core.transcript import AnyEntry, MessageEntry, Transcript
from agent_core.transcript.export.markdown_document import markdown
from tiller_server.fleet.errors import JobUnknown
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.values import OPEN_STATES, Job
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.encode.history import cursor_before
from tiller_server.lsp.encode.history_page import ItemUnknown, history_page
from tiller_server.lsp.encode.serializer import snapshot
from tiller_server.lsp.encode.stored_session import session_info
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from tiller_server.lsp.wire.catalogue import MODEL_LIST
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.sessions import (
    SESSION_EXPORT,
    SESSION_LIST,
    SESSION_OPEN,
    SESSION_READ,
    SessionExportParams,
    SessionListParams,
    SessionOpenParams,
    SessionReadParams,
)

LOOK_S: Final = 1.0
QUIET_LOOKS: Final = 15
"""Looks without news after which a comment keeps the connection open."""
MOST_SESSIONS: Final = 100
LATEST: Final = "latest"
EPOCH: Final = "fleet"
STAGES: Final = 4
"""Numbers of events for each entry: the state of the job changes without an entry, too."""
_NAME: Final = re.compile(r"fleet-([0-9]{1,18})-[0-9]{1,9}")
MARKDOWN: Final = "markdown"


class SessionPanel:
    """Serves the sessions of one database."""

    def __init__(self, database: FleetDatabase, *, clock: Clock) -> None:
        """Prepare; the database is migrated."""
        self._jobs = JobStore(database)
        self._sessions = FleetSessions(database)
        self._clock = clock

    async def call(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a method of the agent.

        Raises:
            RpcError: The method is not served, the params do not fit it, or there is no such session.
        """
        with translated_errors():
            match method:
                case SESSION_OPEN.name:
                    return await self._open(parse(SessionOpenParams, params, method=method))
                case SESSION_READ.name:
                    return await self._page(parse(SessionReadParams, params, method=method))
                case SESSION_LIST.name:
                    return await self._list(parse(SessionListParams, params, method=method))
                case SESSION_EXPORT.name:
                    return await self._export(parse(SessionExportParams, params, method=method))
                case MODEL_LIST.name:
                    return {"models": [], "current": None}  # the panel asks for it at its start
                case _:
                    message = f"{method[:80]} is not served by the fleet: its page only reads"
                    raise RpcError(METHOD_NOT_FOUND, message)

    async def has(self, session: str) -> bool:
        """Return whether a job has such a session."""
        try:
            _ = await self._job(session)
        except SessionNotFound:
            return False
        return True

    async def follow(self, session: str, *, seq: int) -> AsyncIterator[bytes]:
        """Yield a snapshot as a server-sent event whenever the session or its job has changed.

        Args:
            session: Id of the session.
            seq: Number of the last event that the reader has.

        Raises:
            SessionNotFound: No job has such a session.
        """
        looks = 0
        while True:
            job = await self._job(session)
            if (newest := await self._seq(job, session)) != seq:
                # Of before the entries are read: what is written meanwhile is another change.
                seq, looks = newest, 0
                yield _event(session, seq, await self._snapshot(job, session, seq))
            looks += 1
            if looks % QUIET_LOOKS == 0:
                yield b": quiet\n\n"
            await self._clock.sleep(LOOK_S)

    async def _open(self, params: SessionOpenParams) -> JsonObject:
        session = str(params.session)
        if session == LATEST:
            newest = await self._sessions.list(limit=1)
            if not newest:
                message = "no job of the fleet has a session yet"
                raise SessionNotFound(message)
            session = str(newest[0].session)
        job = await self._job(session)
        return await self._snapshot(job, session, await self._seq(job, session))

    async def _page(self, params: SessionReadParams) -> JsonObject:
        session = str(params.session)
        _ = await self._job(session)
        branch = await self._branch(session)
        try:
            return await run_sync(history_page, branch, params)
        except ItemUnknown as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error

    async def _list(self, params: SessionListParams) -> JsonObject:
        limit = min(params.limit or MOST_SESSIONS, MOST_SESSIONS)
        jobs = await run_sync(partial(self._jobs.jobs, limit=limit))
        titles = {job.session: _title(job) for job in jobs}
        terms = (params.query or "").casefold().split()
        listed: list[JsonValue] = []
        for one in await self._sessions.list(limit=limit):
            title = titles.get(str(one.session), one.title or "")
            text = f"{title} {one.preview}".casefold()
            if all(term in text for term in terms):
                listed.append(session_info(replace(one, title=title or None)))
        return {"sessions": listed}

    async def _export(self, params: SessionExportParams) -> JsonObject:
        if params.format != MARKDOWN:
            message = (
                f"{SESSION_EXPORT.name}: the fleet exports {MARKDOWN} only, not {params.format}"
            )
            raise RpcError(INVALID_PARAMS, message)
        job = await self._job(str(params.session))
        stored = await self._sessions.read(SessionId(str(params.session)))
        text = partial(markdown, stored.header, stored.entries, title=_title(job))
        return {"format": MARKDOWN, "content": await run_sync(text)}

    async def _job(self, session: str) -> Job:
        """Return the job of a session.

        Raises:
            SessionNotFound: None has such a session.
        """
        name = _NAME.fullmatch(session)
        try:
            if name is not None:
                return await run_sync(self._jobs.job, int(name[1]))
        except JobUnknown:
            pass
        message = f"no job of the fleet has a session {session[:80]!r}"
        raise SessionNotFound(message)

    async def _seq(self, job: Job, session: str) -> int:
        last = await self._sessions.last_seq(SessionId(session))
        return last * STAGES + _stage(job, session)

    async def _branch(self, session: str) -> tuple[AnyEntry, ...]:
        """Return the entries of the branch; empty before the first one is stored."""
        try:
            stored = await self._sessions.read(SessionId(session))
        except SessionNotFound:
            return ()
        return tuple(Transcript(stored.entries).path())

    async def _snapshot(self, job: Job, session: str, seq: int) -> JsonObject:
        branch = await self._branch(session)
        return await run_sync(partial(_snapshot, job, session, seq, branch))


def _event(session: str, seq: int, shown: JsonObject) -> bytes:
    frame = {"kind": "agent/snapshot", "session": session, "epoch": EPOCH, "seq": seq}
    data = encode({"session": session, "frame": {**frame, "snapshot": shown}})
    return f"event: snapshot\nid: {EPOCH}.{seq}\ndata: ".encode() + data + b"\n\n"


def _stage(job: Job, session: str) -> int:
    if job.session != session or job.state not in OPEN_STATES:
        return 2
    return 0 if job.state == "queued" else 1


def _snapshot(job: Job, session: str, seq: int, branch: tuple[AnyEntry, ...]) -> JsonObject:
    said = [
        entry.message
        for entry in branch
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
    ]
    last = said[-1] if said else None
    config = SessionConfig(
        model=None if last is None else f"{last.provider}/{last.model}",
        thinking="off",
        mode="auto",
        auto_compact=True,
        steering="all",
        follow_up="all",
        tools=(),
    )
    one = SessionSnapshot(
        session=SessionId(session),
        seq=seq,
        state="running" if _stage(job, session) == 1 else "idle",
        activity=Activities(),
        title=f"{_title(job)}: {_state(job)}",
        run=None,
        queue=(),
        paused=False,
        pending=(),
        sandbox="none",
        config=config,
        usage=UsageReport(
            tokens=total_usage(one.usage for one in said), context_used=None, context_size=0
        ),
        changes=ChangeCounts(),
        views=(),
        checkpoints=(),
        unsaved=0,
    )
    cursor = cursor_before(branch, None)
    return snapshot(one, epoch=EPOCH, roots=(), clients=(), cursor=cursor)


def _title(job: Job) -> str:
    return f"{job.kind} of {job.change}"


def _state(job: Job) -> str:
    return f"{job.state}, {job.reason}" if job.reason else job.state
