"""Parts of a session on this machine; the adapters are chosen here."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import defpath
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from agent_core.assembly.builder import StartTools, choose_tools
from agent_core.assembly.config import (
    LiveSettings,
    WorkspaceConfig,
    allowance,
    session_options,
)
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.mcp import server_ground
from agent_core.assembly.models import InitialModelChoice, ModelSet, RequestedModel, choose_start
from agent_core.assembly.request import SessionRequest
from agent_core.assembly.resources import ExtraResourcePaths, LiveResources, RunStartTrust
from agent_core.assembly.session_parts import SessionDeps
from agent_core.assembly.workspace import LiveFolders, notice_of
from agent_core.changes import BlobStore
from agent_core.changes.adapters.blob_stores import FolderBlobStore, MemoryBlobStore
from agent_core.changes.adapters.disk_detector import DiskChangeDetector
from agent_core.changes.ports import ByteFiles, ChangeDetector
from agent_core.hooks import HookLimits
from agent_core.kernel import SessionId
from agent_core.kernel.environment import EnvironmentPlus, EnvironmentWithout
from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.mcp.servers import McpDeps
from agent_core.resources.agents import AgentDefinition
from agent_core.resources.instructions import PromptSection, render_prompt
from agent_core.resources.paths import home_of
from agent_core.resources.settings.values import SettingsValues
from agent_core.session.context import LedgerAccess, WorkspaceContext
from agent_core.session.history.branches import fork_writer_for
from agent_core.session.input.system_prompt import Sections, SystemPrompt
from agent_core.storage import OpenedSession, SessionStore
from agent_core.storage.adapters.paths import can_name_a_file
from agent_core.tools import Tool, ToolSpec
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.port import TaskPresetInfo
from agent_core.transcript import Transcript
from agent_core.transcript.context import last_choice
from agent_core.transcript.tree import records_of
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import Sandbox


def outputs_of(outputs: Path, session: SessionId) -> Path:
    """Return the folder of a session's outputs, or of what else is kept in a folder per session; it may not exist.

    Args:
        outputs: The folder of all sessions' outputs.
        session: Its id. One from a file that somebody placed by hand may be anything, a way out of the folder even.
    """
    plain = can_name_a_file(session)
    name = session if plain else hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
    return outputs / name


def remove_outputs(folder: Path, *, what: str = "the outputs of its tools") -> None:
    """Remove a session's outputs, or what else is called so; when there are none, nothing happens. Blocks.

    Raises:
        StorageUnavailable: They cannot be removed; some of them may be gone.
    """
    try:
        with suppress(FileNotFoundError):
            if folder.is_symlink():
                folder.unlink()
            else:
                shutil.rmtree(folder)
    except OSError as error:
        message = (
            f"the session was removed, and {what} in {str(folder)!r} could not be: "
            f"{error.strerror or error}; remove that folder yourself"
        )
        raise StorageUnavailable(message) from error


def choose_session_deps(
    request: SessionRequest,
    config: WorkspaceConfig,
    models: ModelSet,
    opened: OpenedSession,
    *,
    store: SessionStore,
    sandbox: Sandbox,
    extensions: SessionExtensions,
    agents: "AgentSource | None" = None,
) -> SessionDeps:
    """Choose the parts of a session; forks are written to the store.

    Raises:
        ModelUnknown, ToolSetInvalid: The requested model or tool set cannot be used.
    """
    values, transcript = config.settings.values, opened.transcript
    scratch = scratch_of(request, config, opened)
    contents = _contents(request, config.paths.blobs, opened.log.header.id)
    settings = _live_settings(config, scratch)
    built_in = _built_in(request, config, settings, agents)
    tools = _tools(request, extensions, values, transcript, built_in=built_in)
    start = _start(request, models, settings, transcript)
    resources, sections = _resources(request, config, settings, extensions, agents)
    options = session_options(values, scratch=scratch)
    workspace = _workspace_context(request, config, scratch, models, sandbox, contents=contents)
    env, problems = workspace.workspace.env, _problems(config, models, opened, sandbox)
    servers = server_ground(request, config, sandbox=sandbox, env=env, options=options)
    return SessionDeps(
        clock=request.clock,
        opened=opened,
        fork_writer=fork_writer_for(store),
        workspace=workspace,
        contents=contents,
        source=models.registry,
        model=start.model,
        why_no_model=start.why_no_model,
        look_again=start.look_again,
        thinking=start.thinking,
        asked_for=start.asked_for,
        scoped_models=values.scoped_models,
        tools=(*built_in, *request.custom_tools),
        active_tools=tools.active,
        extensions=extensions,
        servers=servers,
        wants_tool=tools.wants,
        hooks=request.hooks,
        hook_limits=HookLimits(short_s=values.hooks.timeout_s, long_s=values.hooks.long_timeout_s),
        redactor=request.redactor,
        trust=_trust(request, config, resources, servers),
        settings=settings,
        watches=request.watches,
        system_prompt=_whole(sections),
        sections=sections,
        templates=resources,
        steering=values.steering_mode,
        follow_up=values.follow_up_mode,
        options=options,
        notices=(*request.notices, *problems, *start.notices, *tools.notices, *extensions.notices),
    )


class AgentSource(Protocol):
    """Names the agents that tasks can be given to."""

    resources: LiveResources | None
    """Set before the first question."""

    @property
    def had_background(self) -> bool:
        """Whether the session ever had a task in the background."""
        ...

    def agents(self) -> Sequence[AgentDefinition]:
        """Return the agents that there are now."""
        ...


def scratch_of(request: SessionRequest, config: WorkspaceConfig, opened: OpenedSession) -> Path:
    """Return the folder of the outputs of a session's tools; a task has that of the session that gave it."""
    if request.task is not None:
        return request.task.scratch
    return outputs_of(config.paths.outputs, opened.log.header.id)


def _built_in(
    request: SessionRequest,
    config: WorkspaceConfig,
    settings: LiveSettings,
    agents: AgentSource | None,
) -> Sequence[Tool]:
    """Make the tools that Tiller brings along; some of them are offered while settings, mode or tasks say so."""

    def is_planning() -> bool:
        return config.permission_state.mode == "plan" and settings.now.values.plan_review != "off"

    remembering = () if request.memory is None else (request.memory.tool,)
    tools = builtin_tools(
        can_search=lambda: settings.now.values.web.search is not None,
        is_planning=is_planning,
        plan_review=settings.now.values.plan_review,
        task_presets=lambda: () if agents is None else presets_of(agents.agents()),
        had_tasks=lambda: agents is not None and agents.had_background,
    )
    return (*tools, *remembering)


def _ledger(request: SessionRequest, config: WorkspaceConfig) -> LedgerAccess:
    """Return where model calls are recorded: those in a worktree are calls for the checkout that it was made from."""
    purpose = request.purpose if request.task is None or request.purpose != "main" else "task"
    return LedgerAccess(
        open=lambda: request.ledger.of(config.paths),
        folder=str(request.folder or config.origin),
        purpose=purpose,
    )


def presets_of(agents: Sequence[AgentDefinition]) -> Sequence[TaskPresetInfo]:
    """Return how models see agents."""
    return [TaskPresetInfo(name=one.name, description=one.description) for one in agents]


def _tools(
    request: SessionRequest,
    extensions: SessionExtensions,
    values: SettingsValues,
    transcript: Transcript,
    *,
    built_in: Sequence[Tool],
) -> StartTools:
    return choose_tools(
        request.tools,
        own=request.custom_tools,
        brought=extensions.tools,
        built_in=built_in,
        settings=values.default_tools,
        path=records_of(transcript.stored_path),
    )


def _start(
    request: SessionRequest, models: ModelSet, settings: LiveSettings, transcript: Transcript
) -> InitialModelChoice:
    return choose_start(
        RequestedModel(model=request.model, thinking=request.thinking),
        values=settings.now.values,
        registry=models.registry,
        context=last_choice(transcript),
        now=lambda: settings.now.values,
    )


def _resources(
    request: SessionRequest,
    config: WorkspaceConfig,
    settings: LiveSettings,
    extensions: SessionExtensions,
    agents: AgentSource | None,
) -> tuple[LiveResources, Sections]:
    resources = LiveResources(
        request,
        config,
        values=lambda: settings.now.values,
        brought=lambda: _brought(extensions),
    )
    if agents is not None:
        agents.resources = resources
    return resources, _sections(resources, request.redactor)


def _trust(
    request: SessionRequest,
    config: WorkspaceConfig,
    resources: LiveResources,
    servers: McpDeps | None,
) -> RunStartTrust | None:
    """Return the trust that is checked before each run; that of a task is checked by the session that gave it."""
    if config.trust is None or request.task is not None:
        return None
    of_servers = () if servers is None else (servers.files.read_ahead,)
    return RunStartTrust(config.trust, (*of_servers, resources.read_ahead))


def _brought(extensions: SessionExtensions) -> ExtraResourcePaths:
    found = extensions.host.discovered
    return ExtraResourcePaths(skills=tuple(found.skills), prompts=tuple(found.prompts))


def _live_settings(config: WorkspaceConfig, scratch: Path) -> LiveSettings:
    return LiveSettings(
        config.settings,
        layers=config.layers,
        root=config.root,
        scratch=scratch,
        trust=config.trust,
    )


def _contents(request: SessionRequest, blobs: Path, session: SessionId) -> BlobStore:
    """A session that leaves nothing on this machine leaves no contents either."""
    if request.store == "memory":
        return MemoryBlobStore()
    return FolderBlobStore(outputs_of(blobs, session))


def _workspace_context(
    request: SessionRequest,
    config: WorkspaceConfig,
    scratch: Path,
    models: ModelSet,
    sandbox: Sandbox,
    *,
    contents: BlobStore,
) -> WorkspaceContext:
    workspace, raw = _workspace(request, config, scratch, models, sandbox)
    # A task uses that of the session that gave it, unless it has files of its own.
    ours = request.ports is None and (request.task is None or request.task.sandbox is None)
    return WorkspaceContext(
        workspace=workspace,
        raw=raw,
        detector=_change_detector(request, workspace, contents, sandbox) if ours else None,
        permissions=config.permission_state,
        allowed=config.allowed,
        allowance=allowance(config.settings.values.budgets),
        secrets=config.secrets,
        ledger=_ledger(request, config),
    )


def _change_detector(
    request: SessionRequest, workspace: Workspace, contents: BlobStore, sandbox: Sandbox
) -> ChangeDetector:
    return DiskChangeDetector(
        workspace.roots,
        contents,
        DiskProcesses(sandbox=sandbox, ahead="none"),
        env={"PATH": request.env.get("PATH", defpath)},
    )


def _workspace(
    request: SessionRequest,
    config: WorkspaceConfig,
    scratch: Path,
    models: ModelSet,
    sandbox: Sandbox,
) -> tuple[Workspace, ByteFiles | None]:
    root = config.root
    if request.ports is not None:
        return replace(request.ports, env=_without_keys(request.ports.env, models)), None
    added = request.added
    roots = LiveFolders(lambda: (root, *added.trusted))
    readable = LiveFolders(lambda: (scratch, *added.untrusted))
    disk = DiskFiles(roots, home_of(request.env), read_roots=readable, locks=request.locks)
    workspace = Workspace(
        roots=roots,
        files=request.files(disk),
        processes=request.processes(DiskProcesses(sandbox=sandbox)),
        users_processes=request.processes(DiskProcesses()),
        env=_without_keys(_apart(request.env, config), models),
    )
    return workspace, disk


def _problems(
    config: WorkspaceConfig, models: ModelSet, opened: OpenedSession, sandbox: Sandbox
) -> tuple[str, ...]:
    notices = [str(problem) for problem in config.settings.problems]
    notices.extend(str(problem) for problem in models.problems)
    notices.extend(config.left_out)
    if opened.recovery.torn_tail is not None:
        notices.append(
            f"the session's last line was cut off; the fragment is in {opened.recovery.torn_tail}"
        )
    if opened.recovery.patched_lines:
        lines = ", ".join(str(line) for line in opened.recovery.patched_lines)
        notices.append(
            f"the session's file has halves of characters, shown as U+FFFD: lines {lines}"
        )
    if opened.recovery.loose:
        loose = ", ".join(opened.recovery.loose)
        notices.append(
            f"entries of the session follow nothing that is there, or themselves: {loose}"
        )
    if opened.recovery.skipped_lines:
        lines = ", ".join(str(line) for line in opened.recovery.skipped_lines)
        notices.append(f"the session's file has damaged lines, which were left out: {lines}")
    return (*notices, *notice_of(sandbox, setting=config.settings.values.sandbox))


def _sections(resources: LiveResources, redactor: Redactor) -> Sections:
    async def build(specs: Sequence[ToolSpec], topic: str) -> tuple[PromptSection, ...]:
        sections = await resources.sections(specs, topic)
        await redactor.prepare(tuple(section.text for section in sections))
        return tuple(replace(section, text=redactor.text(section.text)) for section in sections)

    return build


def _whole(sections: Sections) -> SystemPrompt:
    async def build(specs: Sequence[ToolSpec]) -> str:
        return render_prompt(await sections(specs, ""))

    return build


def _apart(env: Mapping[str, str], config: WorkspaceConfig) -> Mapping[str, str]:
    """Return the environment of processes; in a worktree git looks for no repository above it."""
    if config.origin == config.root:
        return env
    return EnvironmentPlus(env, ours={"GIT_CEILING_DIRECTORIES": str(config.paths.worktrees)})


def _without_keys(env: Mapping[str, str], models: ModelSet) -> Mapping[str, str]:
    """Return the environment of processes: a command that a model chose has no use for our keys."""
    return EnvironmentWithout(env, hidden=lambda: models.secret_variables)
