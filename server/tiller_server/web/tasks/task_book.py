"""The tasks of scripts: created in the daemon, read from their sessions, cancelled."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.library import unindexed_library
from agent_core.kernel import Clock, JsonObject, JsonValue, MessageId, SessionId, rfc3339, uuid7
from agent_core.kernel.errors import SessionNotFound, StorageError
from agent_core.kernel.json import as_object
from agent_core.resources.paths import AppPaths
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.web.methods import RefusedCall, Role, objection
from tiller_server.web.tasks.models import ApiTask, ApiTaskCreated, ApiTaskRequest
from tiller_server.web.tasks.stored_task import StoredTask, stored_task
from tiller_server.web.tasks.task_log import KEPT, TaskLog, TaskRecord

ENDED: Final = frozenset({"done", "failed", "cancelled"})
HANDLED: Final = "A command of an extension handled the prompt."
DELETED: Final = "The session was deleted."


class CallDenied(Exception):
    """A request is refused before it reaches the daemon; `refusal` says why."""

    def __init__(self, refusal: RefusedCall) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class KeyReused(Exception):
    """An `Idempotency-Key` came with another request than the first time."""


class TaskBook:
    """Tasks of one user. Their state is that of the sessions, so that it outlives this process and the daemon."""

    def __init__(self, link: DaemonLink, paths: AppPaths, *, role: Role, clock: Clock) -> None:
        """Prepare it; nothing is read yet.

        Args:
            link: The daemon.
            paths: Where the sessions are stored, and the list of tasks.
            role: Rights of the server.
            clock: Time.
        """
        self._link = link
        self._log = TaskLog(paths.web / "tasks.jsonl")
        self._library = unindexed_library(paths, clock=clock)
        self._role: Role = role
        self._clock = clock
        self._ended: dict[str, ApiTask] = {}
        self._creating = anyio.Lock()

    async def create(self, request: ApiTaskRequest, *, key: str | None) -> ApiTaskCreated:
        """Send the prompt of a task; the same key creates no second one.

        Args:
            request: The task.
            key: `Idempotency-Key`; None: each request is a task of its own.

        Raises:
            CallDenied: The role of the server does not allow it.
            KeyReused: The key came with another request before.
            AgentRefused: The daemon refuses it, or cannot be reached.
        """
        body = _digest(msgspec.json.encode(request))
        if key is None:
            return await self._create(request, key=None, body=body)
        async with self._creating:
            return await self._create(request, key=_digest(key.encode()), body=body)

    async def _create(
        self, request: ApiTaskRequest, *, key: str | None, body: str
    ) -> ApiTaskCreated:
        record = await self._of_key(key)
        is_new = record is None
        if record is None:
            session = await self._open(request)
            now_ms = self._clock.now_ms()
            made = TaskRecord(
                id=f"task-{uuid7(now_ms)}", session=session, at_ms=now_ms, key=key, body=body
            )
            # Before the prompt is sent: it can be found again when this process ends in between.
            record = await to_thread.run_sync(self._log.add, made)
        if record.body != body:
            raise KeyReused
        content: JsonObject = {"type": "text", "text": request.prompt}
        params: JsonObject = {
            "session": record.session,
            "messageId": record.id,
            "content": [content],
            "delivery": "followUp",
        }
        try:
            accepted = as_object(await self._call("agent/prompt", params))
        except AgentRefused as error:
            # An answer that was lost may have been an acceptance: a repeat with the same key finds out.
            if is_new and error.code is not None:
                await to_thread.run_sync(self._log.remove, record.id)
            raise
        if accepted.get("accepted") == "handled":
            await to_thread.run_sync(self._log.put, replace(record, is_handled=True))
        run = accepted.get("run")
        return ApiTaskCreated(
            task=record.id, session=record.session, run=run if isinstance(run, str) else None
        )

    async def _of_key(self, key: str | None) -> TaskRecord | None:
        if key is None:
            return None
        records = await to_thread.run_sync(self._log.newest_first)
        return next((one for one in records if one.key == key), None)

    async def _open(self, request: ApiTaskRequest) -> str:
        """Open the session of a task and return its id."""
        config: JsonObject = {
            name: value
            for name, value in (
                ("model", request.model),
                ("thinking", request.thinking),
                ("mode", request.mode),
            )
            if value is not None
        }
        params: JsonObject = {"session": request.session or "new"}
        if request.workspace is not None:
            params = {**params, "folders": [Path(request.workspace).as_uri()]}
        if config:
            params = {**params, "config": config}
        if request.title is not None:
            params = {**params, "title": request.title}
        return str(as_object(await self._call("agent/session/open", params)).get("session"))

    async def list(
        self, *, limit: int, cursor: str | None
    ) -> tuple[Sequence[ApiTask], str | None] | None:
        """Return tasks, newest first, and the cursor of the next page; None: the cursor names no task."""
        records = await to_thread.run_sync(self._log.newest_first)
        start = 0
        if cursor is not None:
            start = next((place for place, one in enumerate(records, 1) if one.id == cursor), -1)
        if start < 0:
            return None
        page = records[start : start + limit]
        tasks = [replace(await self._state(one), answer=None) for one in page]
        return tasks, page[-1].id if len(records) > start + limit else None

    async def get(self, id_: str) -> ApiTask | None:
        """Return a task; None: there is none of this id."""
        record = await self._record(id_)
        return None if record is None else await self._state(record)

    async def cancel(self, id_: str) -> ApiTask | None:
        """Cancel the run of a task, or remove its prompt from the queue; None: there is none of this id.

        Raises:
            CallDenied: The role of the server does not allow it.
            AgentRefused: The daemon cannot be reached.
        """
        record = await self._record(id_)
        if record is None:
            return None
        task = await self._current(record)
        params: JsonObject = {"session": record.session, "run": task.run}
        self._check("agent/run/cancel", params)
        if task.queue_id is not None:
            ops: JsonObject = {"op": "remove", "queueId": task.queue_id}
            _ = await self._call("agent/queue/update", {"session": record.session, "ops": [ops]})
        elif task.state not in ENDED:
            _ = await self._call("agent/run/cancel", params)
        return await self._state(record)

    async def _record(self, id_: str) -> TaskRecord | None:
        records = await to_thread.run_sync(self._log.newest_first)
        return next((one for one in records if one.id == id_), None)

    async def _state(self, record: TaskRecord) -> ApiTask:
        if (ended := self._ended.get(record.id)) is not None:
            return ended
        stored = await self._current(record)
        task = ApiTask(
            task=record.id,
            session=record.session,
            run=stored.run,
            state=stored.state,
            reason=stored.reason,
            created_at=rfc3339(record.at_ms),
            prompt=stored.prompt,
            answer=stored.answer,
        )
        if stored.state == "done":
            self._ended[record.id] = task
            while len(self._ended) > KEPT:
                del self._ended[next(iter(self._ended))]
        return task

    async def _current(self, record: TaskRecord) -> StoredTask:
        stored = await self._stored(record)
        return stored if stored.state in ENDED else await self._live(record, stored)

    async def _stored(self, record: TaskRecord) -> StoredTask:
        if record.is_handled:
            return StoredTask(state="done", reason=HANDLED)
        try:
            stored = await self._library.read(SessionId(record.session))
        except SessionNotFound:
            return StoredTask(state="failed", reason=DELETED)
        except StorageError as error:
            return StoredTask(state="failed", reason=str(error))
        return await to_thread.run_sync(stored_task, stored.entries, MessageId(record.id))

    async def _live(self, record: TaskRecord, stored: StoredTask) -> StoredTask:
        """Return the state of a task that has not ended in the file.

        The daemon loads its session: a run whose process died gets its end in the file then.
        """
        try:
            snapshot = await self._link.snapshot(record.session)
        except AgentRefused as error:
            return replace(stored, reason=f"Its session cannot be loaded now: {error}")
        if as_object(snapshot.get("run")).get("id") != stored.run or stored.run is None:
            return await self._stored(record)
        asked = snapshot.get("pending")
        for one in asked if isinstance(asked, list) else []:
            pending = as_object(one)
            if pending.get("run") == stored.run and pending.get("blocking") is not False:
                return replace(stored, state="waiting", reason=_need(pending))
        return stored

    async def _call(self, method: str, params: JsonObject) -> JsonValue:
        self._check(method, params)
        return await self._link.request(method, params)

    def _check(self, method: str, params: JsonObject) -> None:
        refusal = objection(method, params, role=self._role, asked=self._link.asked)
        if refusal is not None:
            raise CallDenied(refusal)


def _need(pending: JsonObject) -> str:
    title = pending.get("title")
    if isinstance(title, str):
        return f"A permission is needed: {' '.join(title.split())}"
    return "An answer to a question is needed."


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
