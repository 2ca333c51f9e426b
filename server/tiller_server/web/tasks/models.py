"""Requests and answers of the task API: the only definition of their fields, also for the OpenAPI document."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from agent_core.events import PermissionMode
from agent_core.kernel.values import Value

ApiTaskState = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
ShortText = Annotated[str, Meta(min_length=1, max_length=200)]
LongText = Annotated[str, Meta(max_length=8192)]


class Contract(Value, frozen=True, kw_only=True):
    """Input and output of a route, as the OpenAPI document describes them."""

    operation: str
    """Its `operationId`."""
    summary: str
    answers: Mapping[int, type[Value] | None]
    """Body of each answer that is no refusal, by status; None: another type than JSON, or none."""
    body: type[Value] | None = None
    query: type[Value] | None = None
    headers: Mapping[str, str] = {}
    """Optional request headers and their descriptions."""


class ApiProblem(Value, frozen=True, kw_only=True):
    """Reason of a refusal."""

    message: str


class ApiRefusal(Value, frozen=True, kw_only=True):
    """Answer to a request that is refused."""

    error: ApiProblem


class ApiTaskRequest(Value, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Prompt to run, and the session for it."""

    prompt: Annotated[str, Meta(min_length=1, description="Prompt.")]
    session: Annotated[
        ShortText | None,
        Meta(description="Session that continues; left out: a new one. A busy session queues it."),
    ] = None
    workspace: Annotated[
        LongText | None,
        Meta(description="Absolute path of the folder of a new session; left out: that of `tiller web`."),
    ] = None  # fmt: skip
    model: Annotated[ShortText | None, Meta(description="Model, as `provider/id`.")] = None
    thinking: Annotated[ShortText | None, Meta(description="Thinking level.")] = None
    mode: Annotated[
        PermissionMode | None, Meta(description="Permission mode; `yolo` is refused.")
    ] = None
    title: Annotated[ShortText | None, Meta(description="Title of a new session.")] = None


class ApiTaskCreated(Value, frozen=True, kw_only=True, rename="camel"):
    """Ids of a task that was accepted."""

    task: Annotated[str, Meta(description="Task id.")]
    session: Annotated[str, Meta(description="Session id.")]
    run: Annotated[str | None, Meta(description="Run id; null: the prompt waits.")]


class ApiTask(Value, frozen=True, kw_only=True, rename="camel"):
    """Task, and its state at the time of the answer."""

    task: Annotated[str, Meta(description="Task id.")]
    session: Annotated[str, Meta(description="Session id.")]
    run: Annotated[str | None, Meta(description="Run id; null: it has not started.")]
    state: Annotated[ApiTaskState, Meta(description="`waiting`: it needs an answer of a person.")]
    reason: Annotated[str | None, Meta(description="Reason of the state, one sentence.")]
    created_at: Annotated[str, Meta(description="Time of its creation, RFC 3339.")]
    prompt: Annotated[str, Meta(description="Beginning of the prompt.")]
    answer: Annotated[
        str | None, Meta(description="Last text of the model, of a task that is done.")
    ] = None


class ApiTaskList(Value, frozen=True, kw_only=True, rename="camel"):
    """Page of tasks, newest first, without their answers."""

    tasks: tuple[ApiTask, ...]
    next: Annotated[
        str | None, Meta(description="Cursor of the next page; null: this is the last.")
    ]


class ApiTaskPage(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choice of a page of tasks."""

    limit: Annotated[int, Meta(ge=1, le=100, description="Tasks of a page.")] = 20
    cursor: Annotated[ShortText | None, Meta(description="`next` of the page before.")] = None


class ApiTaskEvents(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choice of tasks whose events are streamed."""

    tasks: Annotated[
        LongText | None,
        Meta(description="Task ids with commas between; left out: the newest that have not ended."),
    ] = None  # fmt: skip
    after: Annotated[
        LongText | None,
        Meta(description="`id` of the last event; the header `Last-Event-ID` comes first."),
    ] = None  # fmt: skip


class Nothing(Value, frozen=True, kw_only=True):
    """Empty object."""
