"""Sessions whose runs, model calls and tools are recorded."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.request import SessionRequest
from agent_core.assembly.session_parts import SessionDeps
from agent_core.kernel import JsonObject
from agent_core.kernel.ids import mark_run
from agent_core.mcp.port import McpRequest
from agent_core.providers import Model, ModelInfo
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.catalog.catalogue import ModelScope, Named
from agent_core.resources.settings.values import TelemetrySettings
from agent_core.session.model_selection import ModelResolver, Servers
from agent_core.telemetry.adapters.otlp import open_exporter
from agent_core.telemetry.session import Identity, ProcessTelemetry, SessionTelemetry
from agent_core.telemetry.values import parse_traceparent

DISTRIBUTION: Final = "tillerd"
DISABLED: Final = "OTEL_SDK_DISABLED"
CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURES: Final = frozenset({"true", "span_only", "span_and_event"})
"""Values of that variable that ask for contents in spans; contents in events are not sent."""


@asynccontextmanager
async def traced_deps(
    request: SessionRequest, deps: SessionDeps, settings: TelemetrySettings
) -> AsyncGenerator[SessionDeps]:
    """Return the parts of a session that is traced; leaving the context ends its spans, and sends them if nobody else will."""
    if request.env.get(DISABLED, "").strip().lower() == "true":
        yield deps
        return
    shared = request.telemetry
    is_owner = shared.current is None and not shared.outlives_sessions
    try:
        ours = await to_thread.run_sync(_version)
    except BaseException:
        await deps.opened.log.close()
        raise
    opens = partial(
        open_exporter, settings.endpoint or None, version=ours, redactor=request.redactor
    )
    process = shared.start(opens, version=ours)
    telemetry = _session_telemetry(request, deps, settings, process)
    telemetry.open()
    try:
        yield _observed(deps, telemetry, process)
    finally:
        telemetry.close()
        _ = process.sessions.pop(telemetry.identity.session, None)
        if is_owner:
            await process.close()
            shared.current = None


def _version() -> str:
    """Return the installed version; empty if Tiller is not installed. Blocking."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return ""


def _session_telemetry(
    request: SessionRequest,
    deps: SessionDeps,
    settings: TelemetrySettings,
    process: ProcessTelemetry,
) -> SessionTelemetry:
    session = deps.opened.log.header.id
    outer = None if request.task is None else process.sessions.get(request.task.outer)
    captured = request.env.get(CAPTURE, "").strip().lower() in CAPTURES
    telemetry = SessionTelemetry(
        Identity(
            session=session,
            version=process.version,
            workflow=request.workflow if request.task is None else "",
            caller=parse_traceparent(request.traceparent),
            outer=outer,
        ),
        process.queue,
        clock=request.clock,
        redactor=request.redactor,
        has_content=settings.content or captured,
        on_run=mark_run,
    )
    process.sessions[session] = telemetry
    return telemetry


def _observed(
    deps: SessionDeps, telemetry: SessionTelemetry, process: ProcessTelemetry
) -> SessionDeps:
    look_again = deps.look_again

    def look() -> Model | None:
        model = look_again()
        return None if model is None else telemetry.traced(model)

    def trace(one: McpRequest) -> AbstractContextManager[JsonObject]:
        # The servers of a session also serve its tasks.
        caller = process.running(one.call, near=telemetry)
        return caller.mcp_call(one.call, one.tool, server=one.server, protocol=one.protocol)

    return replace(
        deps,
        observer=telemetry.observe,
        source=TracedModels(deps.source, telemetry.traced),
        model=None if deps.model is None else telemetry.traced(deps.model),
        look_again=look,
        servers=None if deps.servers is None else replace(deps.servers, traces=trace),
    )


class TracedModels:
    """The models of a session; the calls of those that are opened are recorded."""

    def __init__(self, source: ModelResolver, traced: Callable[[Model], Model]) -> None:
        self._source = source
        self._traced = traced

    def resolve(self, ref: str, /) -> Named:
        """Find a model as people name one."""
        return self._source.resolve(ref)

    def scope(self, patterns: Sequence[str], /) -> ModelScope:
        """Return the models to cycle through."""
        return self._source.scope(patterns)

    def models(self) -> tuple[ModelInfo, ...]:
        """List every model."""
        return self._source.models()

    def states(self) -> Mapping[str, ProviderState]:
        """Return the providers by id."""
        return self._source.states()

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        return self._source.available()

    async def refresh(self, *, servers: Servers = "keep") -> bool:
        """Read again which models there are."""
        return await self._source.refresh(servers=servers)

    def open(self, facts: ModelInfo, /) -> Model:
        """Return that model, ready to be asked and to be recorded."""
        return self._traced(self._source.open(facts))
