"""The tools of a session, active ones among them, and the context of their calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

import anyio
from msgspec.structs import replace

from agent_core.kernel import JsonValue, RunId, ToolCallId
from agent_core.kernel.errors import ToolSetInvalid
from agent_core.kernel.values import Value
from agent_core.messages import ToolCall
from agent_core.providers import ToolDeclaration
from agent_core.session.changes.detection import (
    ChangeDetectionRecorder,
    WatchedProcesses,
    run_or_default,
)
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.context import (
    ActiveRun,
    SessionOptions,
    SessionServices,
    WorkspaceContext,
    tool_options,
)
from agent_core.session.history.recorder import Background
from agent_core.session.permissions.broker import PermissionBroker
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.tools.processes import TrackedProcesses
from agent_core.session.tools.task_port import OuterEdits
from agent_core.tools import Tool, ToolContext, ToolSpec
from agent_core.tools.port import BackgroundCommands, ProgramVersions, ReadCache, Tasks, ToolInfo
from agent_core.tools.presets import effective_set
from agent_core.workspace import Processes

BUILT_IN: Final = "agent_core."
"""Beginning of the names of the modules of Tiller's own tools."""


class ToolRegistry:
    """A registry and an active set; the set may change between two requests."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        active: str | Sequence[str],
        extension_tools: Sequence[Tool] = (),
    ) -> None:
        """Start with a set.

        Args:
            tools: Those that stay.
            active: A preset or names.
            extension_tools: Those of extensions, which come and go; `bring` exchanges them.
        """
        self._registry: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self._behind: dict[str, Tool | None] = {}
        """By the name of each tool of an extension, the tool in whose place it stands."""
        for tool in extension_tools:
            self._put(tool)
        self._active: tuple[str, ...] = effective_set(active, tuple(self._registry))
        self._at_first: tuple[str, ...] = self._active

    @property
    def active_names(self) -> tuple[str, ...]:
        """The names of the active tools, in a stable order: the prompt stays cacheable."""
        return tuple(self.active())

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._registry)

    def active(self) -> Mapping[str, Tool]:
        """Return the active tools by name."""
        active: dict[str, Tool] = {}
        for name in self._active:
            tool = self._registry[name]
            # `isinstance` with a runtime-checkable protocol takes 0.04 ms, and every request asks it of every tool.
            if getattr(tool, "is_offered", True):
                active[name] = tool
        return active

    def describe(self) -> tuple[ToolInfo, ...]:
        """Return the description of each tool, active or not."""
        active = self.active()
        return tuple(
            ToolInfo(
                name=name,
                description=tool.spec.description,
                parameters=tool.spec.parameters,
                kind=tool.spec.kind,
                source=self._source_of(tool),
                is_active=name in active,
            )
            for name, tool in self._registry.items()
        )

    def _source_of(self, tool: Tool) -> str:
        if tool.spec.mcp is not None:
            return f"mcp:{tool.spec.mcp.partition('/')[0]}"
        if tool.spec.name in self._behind:
            # A tool that `add_tool` registered does not state its extension.
            return f"extension:{getattr(tool, 'extension', '')}".rstrip(":")
        is_ours = type(tool).__module__.startswith(BUILT_IN)
        return "built-in" if is_ours else "program"

    def activate(self, names: str | Sequence[str]) -> None:
        """Choose the active tools: a preset, names, or `+name`/`-name`.

        Raises:
            ToolSetInvalid: Empty, or an unknown name; the set stays.
        """
        self._active = effective_set(names, tuple(self._registry))

    def take_up(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Activate the tools of a branch that are available (if none is, the initial ones); return the missing names.

        Args:
            names: None: the branch never chose any, and those of the beginning are active.
        """
        chosen = self._at_first if names is None else names
        there = tuple(name for name in self._registry if name in chosen)
        self._active = there or self._at_first
        return tuple(name for name in chosen if name not in self._registry)

    def set_extension_tools(self, tools: Sequence[Tool]) -> None:
        """Have these tools of extensions, and no others of theirs; one may stand in the place of another tool.

        A new one is active, and what it stood before is there again when it goes.
        """
        names = {tool.spec.name for tool in tools}
        for name in [one for one in self._behind if one not in names]:
            hidden = self._behind.pop(name)
            if hidden is not None:
                self._registry[name] = hidden
                continue
            del self._registry[name]
            self._at_first = tuple(one for one in self._at_first if one != name)
            self._active = tuple(one for one in self._active if one != name) or self._at_first
        for tool in tools:
            if self._put(tool):
                self._active = (*self._active, tool.spec.name)
                self._at_first = (*self._at_first, tool.spec.name)

    def _put(self, tool: Tool) -> bool:
        """Register a tool of an extension; return whether its name is new."""
        name = tool.spec.name
        is_new = name not in self._registry
        if name not in self._behind:
            self._behind[name] = self._registry.get(name)
        self._registry[name] = tool
        return is_new

    @property
    def server_tools(self) -> tuple[Tool, ...]:
        """The active tools that other servers run."""
        return tuple(one for one in self.active().values() if one.spec.mcp is not None)

    def is_of_extension(self, name: str) -> bool:
        """Return whether a tool comes from an extension."""
        return name in self._behind

    def server_of(self, name: str) -> str | None:
        """Return `server/tool` of a tool that another server runs; None for all others."""
        tool = self._registry.get(name)
        return None if tool is None else tool.spec.mcp

    def host_of(
        self, name: str, arguments: Mapping[str, object], options: Mapping[str, JsonValue]
    ) -> str | None:
        """Return the host that a call of a tool reaches; None: it reaches none that is known.

        Raises:
            ToolError: The settings of the tool do not say which.
        """
        reaches = getattr(self._registry.get(name), "reaches", None)
        return None if reaches is None else reaches(arguments, options)

    def register(self, tool: Tool) -> None:
        """Add a tool and activate it.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        self.add(tool)
        name = tool.spec.name
        self._active = (*self._active, name)
        self._at_first = (*self._at_first, name)

    def add(self, tool: Tool) -> None:
        """Add a tool that is not active before somebody says so.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        name = tool.spec.name
        if name in self._registry:
            message = f"a tool named {name!r} exists already; choose another name"
            raise ToolSetInvalid(message)
        self._registry[name] = tool

    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """Return the active tools as a model sees them."""
        return tuple(
            ToolDeclaration(
                name=tool.spec.name,
                description=tool.spec.description,
                parameters=tool.spec.parameters,
            )
            for tool in self.active().values()
        )


MOVABLE = frozenset({"bash", "task"})
"""Tools whose calls can go on in the background."""


class SideWork(Value, frozen=True, kw_only=True):
    """Work that calls of tools start beside the run."""

    commands: Callable[[], BackgroundCommands]
    """Returns the background commands."""
    tasks: Callable[[], Tasks]
    """Returns the tasks."""
    runner: Background
    """Runs short work that nobody waits for."""


class ToolContexts:
    """Builds the contexts of tool calls, which share the record of read files and of program versions."""

    def __init__(
        self,
        services: SessionServices,
        *,
        workspace: WorkspaceContext,
        options: SessionOptions,
        broker: PermissionBroker,
        questions: QuestionPrompts,
        changes: ChangeRecord,
        toolbox: ToolRegistry,
        seen: ReadCache,
        side_work: SideWork,
        outer: OuterEdits | None = None,
    ) -> None:
        """Create it.

        Args:
            services: Ids, time and events.
            workspace: Files and processes.
            options: Settings of tools.
            broker: Judges calls.
            questions: Asks the user.
            changes: Keeps changes of files.
            toolbox: The tools.
            seen: Texts of files as the model knows them.
            side_work: Background commands and tasks.
            outer: The owner of the changes of files, when it is the session that gave this task; None: this one.
        """
        self._services = services
        self._workspace = workspace
        self._options = options
        self._broker = broker
        self._questions = questions
        self._outer = outer
        self._changes = changes if outer is None else outer.changes
        self._toolbox = toolbox
        self._seen = seen
        self._side_work = side_work
        self._versions = ProgramVersions()
        self._leaves = WeakValueDictionary[ToolCallId, anyio.Event]()

    def leave(self, call: ToolCallId | None) -> bool:
        """Move the command of a running call to the background; return whether there is such a call.

        Args:
            call: The call; None: the newest.
        """
        running = dict(self._leaves)
        event = running.get(call) if call is not None else next(reversed(running.values()), None)
        if event is None or event.is_set():
            return False
        event.set()
        return True

    def context(self, run: ActiveRun, call: ToolCall, output: Callable[[str], None]) -> ToolContext:
        """Return the context of a call; `output` takes what a command writes."""
        from agent_core.session.permissions.guarded_files import GuardedFiles  # noqa: PLC0415 - at first use

        workspace, broker = self._workspace, self._broker
        leave = None
        if call.name in MOVABLE:
            self._leaves[call.id] = leave = anyio.Event()
        guarded = GuardedFiles(
            workspace.workspace.files,
            situation=lambda: workspace.permissions.snapshot(tuple(workspace.workspace.roots)),
            approved=lambda: broker.approved_for(call.id),
            secrets=workspace.secrets,
            judged=broker.judged.get(call.id),
        )
        files = RecordedFiles(
            guarded,
            self._changes,
            author=ChangeOrigin(
                edit=self._services.new_id(), run=self._change_run(run.id), call=call.id
            ),
            publish=run.publish if self._outer is None else self._outer.publish,
            now_ms=self._services.clock.now_ms,
        )
        return ToolContext(
            call=call.id,
            workspace=replace(
                workspace.workspace, files=files, processes=self._processes(call, run.id)
            ),
            clock=self._services.clock,
            output=output,
            scratch=self._options.scratch,
            options=tool_options(self._options, call.name),
            ask=self._questions.asks_for(run.id),
            seen=self._seen,
            versions=self._versions,
            secrets=workspace.secrets,
            background=self._side_work.commands,
            tasks=self._side_work.tasks,
            leave=leave,
            name_warning=broker.warned.get(call.id),
        )

    def look_ahead(self, specs: Iterable[ToolSpec]) -> None:
        """Look at a trusted workspace while the model thinks: the first look at a large one takes its time."""
        detector = self._workspace.detector
        if detector is None or not self._workspace.permissions.is_trusted():
            return
        if any(one.kind == "execute" for one in specs):
            self._side_work.runner.start(partial(run_or_default, detector.prepare, None))

    def _change_run(self, run: RunId) -> RunId:
        """Return the run to which changes of files belong: that of the outer session, while it has one."""
        return run if self._outer is None else self._outer.current_run() or run

    def _processes(self, call: ToolCall, run: RunId) -> Processes:
        """Return the processes of a call; changes of files are detected only for tools that execute commands."""
        workspace, tool = self._workspace, self._toolbox.active().get(call.name)
        tracked = TrackedProcesses(
            workspace.workspace.processes,
            workspace.processes,
            call=call.id,
            needs=self._broker.needs_for(call.id),
        )
        if workspace.detector is None or tool is None or tool.spec.kind != "execute":
            return tracked
        keeper = ChangeDetectionRecorder(
            detector=workspace.detector,
            record=self._changes,
            files=workspace.workspace.files,
            run=self._change_run(run),
            call=call.id,
            new_id=self._services.new_id,
            now_ms=self._services.clock.now_ms,
        )
        return WatchedProcesses(tracked, keeper)
