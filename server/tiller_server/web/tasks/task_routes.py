"""The routes of the task API."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tiller_server.web.answers import answering_refusals, body_of, json_answer, query_of
from tiller_server.web.guard import Endpoint, GuardedRoute, refused
from tiller_server.web.options import WebLimits
from tiller_server.web.tasks.models import (
    ApiTask,
    ApiTaskCreated,
    ApiTaskEvents,
    ApiTaskList,
    ApiTaskPage,
    ApiTaskRequest,
    Contract,
    Nothing,
)
from tiller_server.web.tasks.task_book import ENDED, CallDenied, KeyReused, TaskBook

SessionStream = Callable[[Request, Sequence[str]], Awaitable[Response]]
"""Answers with the events of sessions."""
MAX_KEY: Final = 200
STREAMED: Final = 32
"""Newest tasks among which a stream without a choice looks for those that have not ended."""
NO_TASK: Final = "there is no task of this id"


class TaskRoutes:
    """Routes for scripts, which send a prompt and look for its end."""

    def __init__(self, book: TaskBook, stream: SessionStream, *, limits: WebLimits) -> None:
        """Prepare them.

        Args:
            book: The tasks.
            stream: Answers with the events of sessions.
            limits: Limits of the server.
        """
        self._book = book
        self._stream = stream
        self._limits = limits

    def routes(self) -> Sequence[GuardedRoute]:
        """Return all of them."""
        small = self._limits.max_login_bytes
        return (
            _route("GET", "/api/tasks", self._list, LIST),
            _route(
                "POST", "/api/tasks", self._create, CREATE, max_bytes=self._limits.max_request_bytes
            ),
            _route("GET", "/api/tasks/{id}", self._get, GET),
            _route("POST", "/api/tasks/{id}/cancel", self._cancel, CANCEL, max_bytes=small),
            _route("GET", "/api/sse", self._events, EVENTS),
        )

    async def _create(self, request: Request) -> Response:
        task = await body_of(request, ApiTaskRequest)
        keys = request.headers.getlist("idempotency-key")
        if len(keys) > 1 or not all(0 < len(one) <= MAX_KEY and one.isprintable() for one in keys):
            return refused(
                400, f"Idempotency-Key must be one text of 1 to {MAX_KEY} printable characters"
            )
        if (problem := _problem(task)) is not None:
            return refused(400, problem)
        try:
            with answering_refusals():
                created = await self._book.create(task, key=keys[0] if keys else None)
        except KeyReused:
            return refused(
                422, "this Idempotency-Key came with another request before; use a new one"
            )
        except CallDenied as error:
            return _denied(error)
        return json_answer(created, status=201, headers={"location": f"/api/tasks/{created.task}"})

    async def _list(self, request: Request) -> Response:
        query = query_of(request, ApiTaskPage)
        listed = await self._book.list(limit=query.limit, cursor=query.cursor)
        if listed is None:
            return refused(400, "cursor must be the `next` of a page")
        tasks, after = listed
        return json_answer(ApiTaskList(tasks=tuple(tasks), next=after))

    async def _get(self, request: Request) -> Response:
        task = await self._book.get(str(request.path_params["id"]))
        return refused(404, NO_TASK) if task is None else json_answer(task)

    async def _cancel(self, request: Request) -> Response:
        _ = await body_of(request, Nothing)
        try:
            with answering_refusals():
                task = await self._book.cancel(str(request.path_params["id"]))
        except CallDenied as error:
            return _denied(error)
        return refused(404, NO_TASK) if task is None else json_answer(task)

    async def _events(self, request: Request) -> Response:
        query = query_of(request, ApiTaskEvents)
        if query.tasks is None:
            tasks, _ = await self._book.list(limit=STREAMED, cursor=None) or ((), None)
            chosen = [one for one in tasks if one.state not in ENDED]
        else:
            wanted = [*dict.fromkeys(query.tasks.split(","))]
            if len(wanted) > self._limits.max_sessions:
                return refused(
                    400, f"tasks must be 1 to {self._limits.max_sessions} ids with commas between"
                )
            chosen = [one for one in [await self._book.get(id_) for id_ in wanted] if one]
        if not chosen:
            # An EventSource does not ask again after it.
            return Response(status_code=204)
        return await self._stream(request, [*dict.fromkeys(one.session for one in chosen)])


KEY: Final = "Text that makes a repeat of the request the same task."
CREATE: Final = Contract(
    operation="createTask",
    summary="Send a prompt and return at once. Needs the role operator.",
    body=ApiTaskRequest,
    answers={201: ApiTaskCreated},
    headers={"Idempotency-Key": KEY},
)
LIST: Final = Contract(
    operation="listTasks",
    summary="List the tasks, newest first.",
    query=ApiTaskPage,
    answers={200: ApiTaskList},
)
GET: Final = Contract(
    operation="getTask", summary="Return a task and its state.", answers={200: ApiTask}
)
CANCEL: Final = Contract(
    operation="cancelTask",
    summary="Cancel a task; one that has ended stays as it is. Needs the role approver.",
    body=Nothing,
    answers={200: ApiTask},
)
EVENTS: Final = Contract(
    operation="streamTasks",
    summary="Stream the events of the sessions of tasks as server-sent events.",
    query=ApiTaskEvents,
    answers={200: None, 204: None},
    headers={"Last-Event-ID": "The `id` after which the stream continues."},
)


def _route(
    method: str, path: str, endpoint: Endpoint, contract: Contract, *, max_bytes: int = 0
) -> GuardedRoute:
    return GuardedRoute(path, endpoint, method=method, max_bytes=max_bytes, contract=contract)


def _problem(task: ApiTaskRequest) -> str | None:
    if task.workspace is not None and not Path(task.workspace).is_absolute():
        return f"workspace must be an absolute path, got {task.workspace[:80]!r}"
    if task.session is not None and task.title is not None:
        return "title is for a new session; leave it out or leave out session"
    if task.session in {"new", "latest"}:
        return "session must be an id; leave it out for a new session"
    return None


def _denied(error: CallDenied) -> Response:
    is_denied = error.refusal.kind == "PermissionDenied"
    return refused(403 if is_denied else 400, error.refusal.message)
