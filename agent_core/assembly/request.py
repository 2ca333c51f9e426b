"""Which session to open, and how."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
from msgspec import Struct

from agent_core.assembly.workspace import AddedRoots
from agent_core.events import ThinkingLevel
from agent_core.events.values import CallPurpose
from agent_core.extensions.loader import Factory
from agent_core.extensions.ports import ViewFilter
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, JsonObject, JsonValue, SessionId, SystemClock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.http.client import HttpPool
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import LayerName
from agent_core.session import AgentSession
from agent_core.storage import SessionStore
from agent_core.tools import Tool
from agent_core.workspace import Files, Processes, Workspace
from agent_core.workspace.files.disk.disk_files import PathLocks
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.sandbox import Prober, Sandbox

if TYPE_CHECKING:
    from agent_core.acp.task import ExternalTask
    from agent_core.storage.adapters.ledger import SqliteLedger
    from agent_core.telemetry.queue import Exporter
    from agent_core.telemetry.session import ProcessTelemetry

StoreKind = Literal["files", "memory"]

if TYPE_CHECKING:
    from agent_core.memory.session_memory import SessionMemory


class TaskOrigin(Value, frozen=True, kw_only=True):
    """A session that is opened for a task, and what it shares with the session that gave the task."""

    id: SessionId
    """Id of the session; it is new unless the request names it."""
    outer: SessionId
    instructions: str
    """Part of the system prompt."""
    scratch: Path
    """Folder of the outputs of tools."""
    sandbox: Sandbox | None
    """Closed by the outer session; None: the task has files, and so a sandbox, of its own."""
    external: "ExternalTask | None" = None
    """The external agent that works on it; None: a model does."""


class SharedTelemetry(Struct):
    """Telemetry of a process; created by the first session whose settings switch it on."""

    current: "ProcessTelemetry | None" = None
    outlives_sessions: bool = False
    """Whether the owner of this closes it; otherwise the end of the session that created it does."""

    def start(self, open_exporter: "Callable[[], Exporter]", *, version: str) -> "ProcessTelemetry":
        """Return the telemetry of the process, which is created if there is none."""
        from agent_core.telemetry.queue import TelemetryQueue  # noqa: PLC0415 - at first use
        from agent_core.telemetry.session import ProcessTelemetry  # noqa: PLC0415 - at first use

        if self.current is None:
            self.current = ProcessTelemetry(TelemetryQueue(open_exporter), version=version)
        return self.current

    async def close(self) -> None:
        """Send what is left, within two seconds."""
        if self.current is not None:
            await self.current.close()


class SharedLedger:
    """The ledger of model calls that the sessions of a process share: opened at the first call, closed with the last session."""

    def __init__(self) -> None:
        self._ledger: SqliteLedger | None = None
        self._sessions: set[object] = set()

    def of(self, paths: AppPaths) -> "SqliteLedger":
        """Return the ledger of a user."""
        from agent_core.storage.adapters.ledger import SqliteLedger  # noqa: PLC0415 - at first use

        if self._ledger is None:
            self._ledger = SqliteLedger(paths.costs)
        return self._ledger

    def enter(self) -> Callable[[], None]:
        """Keep the ledger open for a session; return what ends that. With the last session the ledger is closed; blocking."""
        session = object()
        self._sessions.add(session)
        return partial(self._leave, session)

    def _leave(self, session: object) -> None:
        self._sessions.discard(session)
        # A session that begins now on another thread opens the same ledger again.
        if not self._sessions and self._ledger is not None:
            self._ledger.close()


class ClientServers(SecretValue, frozen=True, kw_only=True):
    """MCP servers that the client of a session brings; their variables may hold secrets."""

    hidden: ClassVar = frozenset({"servers"})

    servers: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """By name, as `mcpServers` of `mcp.json`."""


class SessionRequest(Value, frozen=True, kw_only=True):
    """Which session to open, and how."""

    workspace: Path
    """A folder; made absolute and real on opening."""
    session: str = "new"
    """`new`, `latest` (of this workspace, else a new one) or an id."""
    file: Path | None = None
    """File of the session to continue, in the place of `session`."""
    parent: str | None = None
    """Origin of a new session: an id or a file."""
    title: str | None = None
    """Name of a new session."""
    setup: "Callable[[AgentSession], Awaitable[object]] | None" = None
    """Prepares a new session."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """The environment: keys are looked up in it, and processes get it without them. May be exchanged meanwhile."""
    paths: AppPaths | None = None
    """Where configuration and data lie; None: as `env` says."""
    settings: Mapping[LayerName, JsonObject] = msgspec.field(
        default_factory=dict["LayerName", JsonObject]
    )
    """Settings above the user's file, by layer."""
    rules: Sequence[Rule] = ()
    """Permission rules of the scope `session`: in force beside those of the files, and written to none."""
    watches: FolderWatches | None = None
    """How it is seen that a file of settings is changed: to be shared by the sessions of a process. None: settings that
    change count when somebody asks to read them again."""
    model: str | None = None
    thinking: ThinkingLevel | None = None
    tools: str | Sequence[str] | None = None
    """Active tools, for as long as this has the session open: a preset, or names; None: as the session or the settings say."""
    custom_tools: Sequence[Tool] = ()
    added: AddedRoots = msgspec.field(default_factory=AddedRoots)
    """Folders of the workspace besides the primary one; the opener of the session sets them."""
    folders: Sequence[Path] = ()
    """Folders that are added on opening; each is a folder."""
    store: StoreKind | SessionStore = "files"
    hooks: HookTable = msgspec.field(default_factory=HookTable)
    extensions: Sequence[Path] = ()
    """Files and folders of extensions besides those that are found; absolute, or below the workspace. Each must load, or no session is opened."""
    own_extensions: Sequence[Factory] = ()
    """Functions that register as extensions do; they come last."""
    showing: ViewFilter = msgspec.field(default_factory=ViewFilter)
    """Kinds of extension views that are shown; the opener of the session sets them."""
    files: Callable[[Files], Files] = lambda disk: disk
    """Wraps the disk, for example with the open documents of an editor."""
    processes: Callable[[Processes], Processes] = lambda plain: plain
    """The same for processes."""
    trusted: bool | None = None
    """Whether whoever opens it vouches for the workspace; None: as the user said, and as they are asked."""
    task: TaskOrigin | None = None
    """None: the session is no task."""
    on_task: "Callable[[SessionRequest, AgentSession], AbstractAsyncContextManager[object]]" = (
        lambda _, session: nullcontext(session)
    )
    """Entered for as long as the session of a task is open."""
    memory: "SessionMemory | None" = None
    """The memory, opened with the session; None: it is off."""
    purpose: CallPurpose = "main"
    """Purpose of the conversation's model calls in the ledger."""
    folder: Path | None = None
    """Folder that the calls are counted for; None: the workspace."""
    ledger: SharedLedger = msgspec.field(default_factory=SharedLedger)
    """Ledger of model calls: to be shared by the sessions of a process."""
    titled: bool = False
    """Whether a model makes a title when the session has none, as the settings say: for sessions that people come back to."""
    notices: Sequence[str] = ()
    """Notices shown to the user first, one sentence each."""
    ports: Workspace | None = None
    """A workspace that is not on this machine's disk; then `files`, `processes` and `locks` are not used."""
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from stored and published texts; shared by the sessions of a process."""
    prober: Prober = msgspec.field(default_factory=Prober)
    """How this machine contains processes: to be shared by the sessions of a process, which then ask once."""
    locks: PathLocks = msgspec.field(default_factory=PathLocks)
    """One writer per file: to be shared by the sessions of a process."""
    telemetry: SharedTelemetry = msgspec.field(default_factory=SharedTelemetry)
    """Sends traces and metrics if the user's settings say so; to be shared by the sessions of a process."""
    client_servers: ClientServers = msgspec.field(default_factory=ClientServers)
    traceparent: str = ""
    """Span of the program that opens the session, above its runs; empty: none."""
    workflow: str = ""
    """Name of the workflow that the session makes; it gets a span. Empty: none."""
    pool: HttpPool | None = None
    """Connections to providers that several sessions share; None: of this session's own."""
    clock: Clock = msgspec.field(default_factory=SystemClock)
