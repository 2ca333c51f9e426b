"""The spans and measurements of one session, from its events and its model calls."""

import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.events import (
    Event,
    EventEnvelope,
    RunEnded,
    RunStarted,
    TaskCreated,
    ToolEnded,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import Clock, ItemId, JsonObject, RunId, SessionId, ToolCallId
from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Usage
from agent_core.providers import (
    Model,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    UsageUpdate,
)
from agent_core.providers.model import RecordedModel
from agent_core.telemetry import names
from agent_core.telemetry.content import MessageWriter
from agent_core.telemetry.queue import TelemetryQueue
from agent_core.telemetry.spans import OpenSpan, SpanRecorder, SpanTimer, TelemetryPort
from agent_core.telemetry.values import Attributes, TraceContext

log = logging.getLogger(__name__)

MAIN_AGENT = "tiller"
"""Name of the agent that users talk to; the agent of a task has the name of its preset."""
MOST_GAPS = 1000
"""Waits between parts that are measured, of one answer; later ones are not."""


class Identity(Value, frozen=True, kw_only=True):
    """The session that telemetry is of, and where its traces belong."""

    session: SessionId
    version: str
    workflow: str = ""
    """The workflow that the session makes, for example a review; empty: none."""
    caller: TraceContext | None = None
    """The span of the program that started this; None: there is none."""
    outer: "SessionTelemetry | None" = None
    """The session that gave this task; None: it is not known, or the session is no task."""


class _TaskOrigin(Value, frozen=True, kw_only=True):
    """The tool call that started a task, and the name of the agent that works on it."""

    context: TraceContext | None
    agent: str


class SessionTelemetry:
    """Observer of a session's events, and wrapper of the models that it asks. Used on the loop's thread only."""

    def __init__(
        self,
        identity: Identity,
        port: TelemetryPort,
        *,
        clock: Clock,
        redactor: TextRedactor,
        has_content: bool = False,
        on_run: Callable[[RunId, str], None] = lambda _, __: None,
    ) -> None:
        """Create the telemetry of a session.

        Args:
            identity: The session.
            port: Receives spans and measurements.
            clock: Time.
            redactor: Removes secrets from contents of messages.
            has_content: Whether spans have the contents of messages.
            on_run: Called with a run and its trace when the run begins, in its task.
        """
        self.identity = identity
        self._writer = MessageWriter(redactor) if has_content else None
        self._on_run = on_run
        self._clock = clock
        outer = identity.outer
        self.timer = SpanTimer(clock=clock) if outer is None else outer.timer
        self._spans = SpanRecorder(port=port, clock=clock, timer=self.timer)
        self._run: OpenSpan | None = None
        self._workflow: OpenSpan | None = None
        self._calls: dict[ItemId, ToolStarted] = {}
        """Tool calls that have no result yet."""
        self._tools: dict[ItemId, tuple[OpenSpan, JsonObject]] = {}
        """Those of them that run, with their arguments."""
        self._tasks: dict[SessionId, _TaskOrigin] = {}

    # ------------------------------------------------------------------ the session

    def open(self) -> None:
        """Begin the workflow, if the session is one."""
        if self.identity.workflow:
            self.timer.reset()
            attributes = names.workflow(self.identity.workflow, session=self.identity.session)
            name = f"{names.INVOKE_WORKFLOW} {self.identity.workflow}"
            self._workflow = self._spans.begin(name, attributes, parent=self.identity.caller)

    def close(self) -> None:
        """End what is open."""
        for span, _ in self._tools.values():
            self._spans.end(span, error="the session was closed", error_type="closed")
        self._tools.clear()
        if self._run is not None:
            self._spans.end(self._run, error="the session was closed", error_type="closed")
            self._run = None
        if self._workflow is not None:
            took_s = self._spans.end(self._workflow)
            name: Attributes = {names.WORKFLOW_NAME: self.identity.workflow}
            self._spans.measure(names.WORKFLOW_DURATION, took_s, attributes=name)
            self._workflow = None

    # ------------------------------------------------------------------ events

    def observe(self, stamped: EventEnvelope) -> None:
        """Make spans of the events of runs and tools. Never waits or raises."""
        try:
            self._observe(stamped.event)
        except Exception:
            # Whoever publishes an event must not fail because it is recorded.
            log.exception("an event was not recorded for telemetry")

    def _observe(self, event: Event) -> None:
        match event:
            case RunStarted(run=run):
                self._begin_run(run)
            case RunEnded():
                self._end_run(event)
            case ToolStarted():
                self._calls[event.item] = event
            case ToolRunning():
                self._begin_tool(event)
            case ToolEnded():
                self._end_tool(event)
            case TaskCreated(task=task):
                span = None if task.item is None else self._tools.get(task.item)
                context = self._current() if span is None else span[0].context
                self._tasks[task.session] = _TaskOrigin(context=context, agent=task.preset)
            case _:
                pass

    def _begin_run(self, run: RunId) -> None:
        origin = self._origin()
        agent = MAIN_AGENT if origin is None else origin.agent
        parent = self.identity.caller if origin is None else origin.context
        if self._workflow is not None:
            parent = self._workflow.context
        if self.identity.outer is None and self._workflow is None:
            self.timer.reset()
        identity = self.identity
        attributes = names.agent(agent, session=identity.session, version=identity.version)
        self._run = self._spans.begin(f"{names.INVOKE_AGENT} {agent}", attributes, parent=parent)
        self._run.attributes[names.RUN_ID] = run
        self._on_run(run, f"{self._run.context.trace_id:032x}")

    def _origin(self) -> _TaskOrigin | None:
        outer = self.identity.outer
        if outer is None:
            return None
        origin = outer._tasks.get(self.identity.session)  # noqa: SLF001 - of the same class
        return origin or _TaskOrigin(context=outer._current(), agent="task")  # noqa: SLF001 - as above

    def _end_run(self, event: RunEnded) -> None:
        if self._run is None:
            return
        run, self._run = self._run, None
        run.attributes |= names.run_end(event)
        error_type = names.run_error(event.status)
        why = event.error.message if event.error is not None else ""
        took_s = self._spans.end(run, error=why, error_type=error_type)
        agent: Attributes = {names.AGENT_NAME: run.attributes[names.AGENT_NAME]}
        self._spans.measure(names.AGENT_DURATION, took_s, attributes=agent, error_type=error_type)
        self._calls.clear()

    def _begin_tool(self, event: ToolRunning) -> None:
        if (started := self._calls.get(event.item)) is not None:
            span = self._tool_span(started.name, started.call)
            self._tools[event.item] = (span, event.input)

    def _tool_span(self, name: str, call: ToolCallId) -> OpenSpan:
        attributes = names.tool(name, call)
        return self._spans.begin(f"{names.EXECUTE_TOOL} {name}", attributes, parent=self._current())

    def _end_tool(self, event: ToolEnded) -> None:
        _ = self._calls.pop(event.item, None)
        opened = self._tools.pop(event.item, None)
        # A call that was refused or skipped has a span too, which takes no time.
        span, arguments = opened or (self._tool_span(event.name, event.call), {})
        span.attributes[names.TOOL_STATUS] = event.status
        content = None
        if self._writer is not None:
            content = partial(self._writer.tool, arguments, event.content)
        error_type = names.tool_error(event.status)
        # Results of calls side by side are published together, after the last of them.
        duration_s = None if event.duration_ms is None else event.duration_ms / 1000
        took_s = self._spans.end(
            span, error_type=error_type, duration_s=duration_s, content=content
        )
        if opened is not None:
            tool: Attributes = {names.TOOL_NAME: event.name}
            self._spans.measure(names.TOOL_DURATION, took_s, attributes=tool, error_type=error_type)

    # ------------------------------------------------------------------ model calls

    def traced(self, model: Model) -> Model:
        """Return a model whose calls are recorded."""
        return RecordedModel(model, lambda: self)

    @asynccontextmanager
    async def stream(
        self, model: Model, request: ModelRequest, /
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask a model and record the call, however it ends."""
        facts = model.facts
        span = self._spans.begin(
            f"{names.CHAT} {facts.id}",
            names.request(facts, request),
            parent=self._current(),
            kind="client",
        )
        call = ModelCall(clock=self._clock, begun_s=span.begun_s)
        error: BaseException | None = None
        try:
            async with model.stream(request) as parts, aclosing(call.watched(parts)) as watched:
                yield watched
        except Exception as failure:
            error = failure
            raise
        except anyio.get_cancelled_exc_class() as failure:
            error = failure
            raise
        finally:
            self._end_call(span, call, facts, request=request, error=error)

    def _end_call(
        self,
        span: OpenSpan,
        call: "ModelCall",
        facts: ModelInfo,
        *,
        request: ModelRequest,
        error: BaseException | None,
    ) -> None:
        answer, first_s = call.answer, call.first_s
        is_cancelled = error is not None and not isinstance(error, Exception)
        error_type = None
        if answer is not None:
            span.attributes |= names.answer(answer)
        elif error is None or is_cancelled:
            error_type = "cancelled"
        else:
            error_type = names.error_type(error)
        span.attributes |= names.usage(call.usage)
        if first_s is not None:
            span.attributes[names.RESPONSE_FIRST_CHUNK] = first_s
        content = None
        if self._writer is not None:
            content = partial(self._writer.call, request, answer)
        why = str(error) if error_type and isinstance(error, Exception) else ""
        took_s = self._spans.end(span, error=why, error_type=error_type, content=content)
        target = names.target(facts)
        self._spans.measure(names.CALL_DURATION, took_s, attributes=target, error_type=error_type)
        if first_s is not None:
            self._spans.measure(names.FIRST_CHUNK, first_s, attributes=target)
        if call.gaps_s:
            self._spans.measure(names.PER_CHUNK, *call.gaps_s, attributes=target)
        counts = {"input": names.input_tokens(call.usage), "output": call.usage.output}
        for kind, count in counts.items():
            if count:
                attributes: Attributes = {**target, names.COUNT_TYPE: kind}
                self._spans.measure(names.CALL_COUNTS, count, attributes=attributes)

    # ------------------------------------------------------------------ MCP

    @contextmanager
    def mcp_call(
        self, call: ToolCallId, tool: str, *, server: str, protocol: str
    ) -> Generator[JsonObject]:
        """Record a request to an MCP server for a tool call; yields what its `_meta` gets."""
        span = self._spans.begin(
            f"{names.TOOLS_CALL} {tool}",
            names.mcp(tool, server=server, protocol=protocol),
            parent=self.context_of(call) or self._current(),
            kind="client",
        )
        error: BaseException | None = None
        try:
            yield {"traceparent": span.context.traceparent}
        except BaseException as failure:
            error = failure
            raise
        finally:
            error_type = None if error is None else names.error_type(error)
            why = str(error) if isinstance(error, Exception) else ""
            took_s = self._spans.end(span, error=why, error_type=error_type)
            method: Attributes = {names.MCP_METHOD: names.TOOLS_CALL}
            self._spans.measure(
                names.MCP_DURATION, took_s, attributes=method, error_type=error_type
            )

    def context_of(self, call: ToolCallId) -> TraceContext | None:
        """Return the place of a tool call that runs; None: no such call runs here."""
        of_call = (span for span, _ in self._tools.values() if _is_of(span, call))
        found = next(of_call, None)
        return None if found is None else found.context

    def _current(self) -> TraceContext | None:
        span = self._run or self._workflow
        return self.identity.caller if span is None else span.context


def _is_of(span: OpenSpan, call: ToolCallId) -> bool:
    return span.attributes.get(names.TOOL_CALL_ID) == call


class ModelCall(Struct, kw_only=True):
    """The parts of an answer that have come: their times and counts."""

    clock: Clock
    begun_s: float
    usage: Usage = msgspec.field(default_factory=Usage)
    answer: AssistantMessage | None = None
    first_s: float | None = None
    """Seconds until the first part."""
    gaps_s: list[float] = msgspec.field(default_factory=list[float])
    """Seconds between two parts, of the first ones."""

    async def watched(
        self, parts: AsyncGenerator[StreamEvent, None]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Pass on parts and note when they come and what they count."""
        before_s = self.begun_s
        async for part in parts:
            match part:
                case UsageUpdate(usage=usage):
                    self.usage = usage
                case StreamFinished(message=message):
                    self.answer, self.usage = message, message.usage
                case _:
                    now_s = self.clock.monotonic_s()
                    if self.first_s is None:
                        self.first_s = now_s - self.begun_s
                    elif len(self.gaps_s) < MOST_GAPS:
                        self.gaps_s.append(now_s - before_s)
                    before_s = now_s
            yield part


class ProcessTelemetry:
    """The queue of a process, and the sessions that use it."""

    def __init__(self, queue: TelemetryQueue, *, version: str) -> None:
        self.queue = queue
        self.version = version
        self.sessions: dict[SessionId, SessionTelemetry] = {}

    def running(self, call: ToolCallId, *, near: SessionTelemetry) -> SessionTelemetry:
        """Return the session in which a tool call runs: `near`, one of its tasks, or else `near` again."""
        tasks = (one for one in self.sessions.values() if one.identity.outer is near)
        return next((one for one in (near, *tasks) if one.context_of(call) is not None), near)

    async def close(self) -> None:
        """Send what is left; a collector that does not answer is waited for two seconds at most."""
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self.queue.close)
