"""Builds a session out of its ports: no settings, no files of configuration, no choice of adapters."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from agent_core.assembly.extensions import ExtensionBinding
from agent_core.assembly.session_parts import SessionDeps, SessionParts
from agent_core.events import Notice, RunResult
from agent_core.hooks import SessionBegun
from agent_core.kernel import EntryId, ItemId
from agent_core.kernel.values import Value
from agent_core.loop import LoopContext, TurnCount
from agent_core.mcp.approvals import is_of_server
from agent_core.messages import ToolCall
from agent_core.resources.load_result import Reloadable
from agent_core.session import AgentSession
from agent_core.session.changes.detection import UserEdits
from agent_core.session.changes.revert import ProposalApplier
from agent_core.session.changes.views import ChangesView, CheckpointView
from agent_core.session.context import ActiveRun
from agent_core.session.history.branches import (
    Branches,
    BranchState,
    BranchSummaries,
    BranchTree,
    Forks,
)
from agent_core.session.history.compaction_request import CompactionRequests
from agent_core.session.history.tree import TreeView
from agent_core.session.history.tree_hooks import NavigationHooks
from agent_core.session.input.commands import ResourceView
from agent_core.session.input.submission import PromptSubmitter, QueueView
from agent_core.session.permissions.question_prompts import PermissionView
from agent_core.session.runs.attempts import Attempts, RunRequests
from agent_core.session.runs.cancel import ActivityCanceller
from agent_core.session.runs.executor import (
    RunCheck,
    RunExecutor,
    RunOpening,
    RunPreparation,
    RunStarter,
)
from agent_core.session.runs.recovered_state import tools_of
from agent_core.session.runs.recovery import RecoveredTasks, RunRetrier
from agent_core.session.runs.transcript_port import (
    RunHooks,
    RunInputHooks,
    RunTranscript,
    TurnPreparation,
)
from agent_core.session.session import SessionViews
from agent_core.session.tools.user_bash import UserBash
from agent_core.session.views import (
    EventsView,
    ModelView,
    ProgramView,
    SessionSwitchHooks,
    SessionView,
    SnapshotSource,
    ToolView,
)
from agent_core.tools import Tool, ToolContext
from agent_core.tools.port import BackgroundCommand
from agent_core.tools.runner import CallLimit, ToolRunner
from agent_core.transcript import AnyEntry

if TYPE_CHECKING:
    from agent_core.session.tools.tasks import SessionTasks


@asynccontextmanager
async def build_session(deps: SessionDeps) -> AsyncGenerator[AgentSession, None]:
    """Build a session and hold its tasks; leaving the context cancels what goes on and settles the file.

    The log is closed however it ends, also when no session can be built.
    """
    try:
        parts = SessionParts(deps)
        session = build_agent_session(parts)
    except BaseException:
        await deps.opened.log.close()
        raise
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(parts.recorder.keep_trying)
        parts.background.group = group
        if parts.servers is not None:
            parts.servers.live_in(group)
        if deps.watches is not None and parts.settings is not None:
            group.start_soon(parts.settings.watch, deps.watches)
        if deps.extensions is not None:
            deps.extensions.bind(_binding(parts, session, group))
        try:
            await parts.hook_paths.look("startup")
            await parts.recovery.recover(parts.recovered)
            _ = await parts.hooks.ask(_begun(parts.publisher.opened_after))
            # The session that gave a task has told of the files that both use.
            wrong = () if deps.outer is not None else await deps.templates.refresh()
            for text in (*deps.notices, *wrong):
                parts.publisher.backlog.append(Notice(level="warning", text=text))
            yield session
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            failure = error
        finally:
            await session.close()
            if deps.extensions is not None:
                deps.extensions.close()
            has_own_files = deps.outer is None or deps.outer.edits is None
            if deps.workspace.detector is not None and has_own_files:
                deps.workspace.detector.close()
            parts.background.group = None
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _begun(newest: EntryId | None) -> SessionBegun:
    return SessionBegun(reason="new" if newest is None else "resume")


def _binding(parts: SessionParts, session: AgentSession, group: TaskGroup) -> ExtensionBinding:
    return ExtensionBinding(
        session=session,
        group=group,
        publisher=parts.publisher,
        hooks=parts.hooks,
        workspace=parts.workspace,
        commands=parts.commands,
        toolbox=parts.toolbox,
        models=parts.models,
        usage=parts.usage,
        prompt=parts.deps.system_prompt,
    )


def build_agent_session(parts: SessionParts) -> AgentSession:
    """Build a session from its parts."""
    starter = _starter(parts)
    bash = UserBash(
        parts.services,
        workspace=parts.workspace,
        options=parts.deps.options,
        recorder=parts.recorder,
        deferred=parts.deferred,
        hooks=parts.hooks,
        runs=parts.runs,
    )
    canceller = ActivityCanceller(
        parts.services,
        runs=parts.runs,
        bash=bash,
        ending=parts.ending,
        processes=parts.workspace.processes,
        queue=parts.queue,
        recorder=parts.recorder,
        hooks=parts.hooks,
        end_background=parts.end_background,
    )
    return AgentSession(
        parts.services,
        views=_views(parts, starter, bash),
        runs=parts.runs,
        starter=starter,
        submitter=_submitter(parts, starter),
        retrier=RunRetrier(
            parts.services,
            recorder=parts.recorder,
            message_index=parts.message_index,
            queue=parts.queue,
            runs=parts.runs,
            starter=starter,
        ),
        canceller=canceller,
        compactions=CompactionRequests(
            parts.services,
            parts.compaction,
            models=parts.models,
            runs=parts.runs,
            canceller=canceller,
            starter=starter,
            background=parts.background,
        ),
        bash=bash,
        stop_background=partial(_stop_background, parts),
        leave=partial(_leave, parts),
    )


def _starter(parts: SessionParts) -> RunStarter:
    starter = RunStarter(
        parts.services,
        runs=parts.runs,
        queue=parts.queue,
        models=parts.models,
        budgets=parts.budgets,
        recorder=parts.recorder,
        new_executor=partial(build_executor, parts),
        after_run=partial(_after_run, parts),
        begin_reads=_no_reads if parts.deps.trust is None else parts.deps.trust.begin,
    )
    parts.go_on = starter.go_on
    _add_tasks(parts)
    return starter


def _no_reads() -> None:
    """Begin nothing: the session that gave a task has read what configures it."""


def _add_tasks(parts: SessionParts) -> None:
    """Have the tasks of a session built when they are first used."""

    def build() -> "tuple[SessionTasks, RecoveredTasks]":
        from agent_core.assembly.task_parts import task_deps  # noqa: PLC0415 - at first use
        from agent_core.session.tools.task_recovery import TaskRecovery  # noqa: PLC0415 - at first use
        from agent_core.session.tools.tasks import SessionTasks  # noqa: PLC0415 - at first use

        deps = task_deps(parts)
        tasks = SessionTasks(deps, parts.recovered)
        return tasks, TaskRecovery(tasks, deps, parts.recovered)

    parts.build_tasks = build
    if parts.deps.tasks is not None:
        restored = parts.recovered.tasks.values()
        parts.deps.tasks.had_background = any(one.background for one in restored)


def _after_run(parts: SessionParts, result: RunResult) -> None:
    """Begin to make a title for the session."""
    if parts.deps.titled:
        parts.titles.begin(result)


async def _stop_background(parts: SessionParts, id_: str) -> BackgroundCommand:
    """Stop a background command for the user."""
    return await parts.background_commands.stop(id_, by="user")


def _leave(parts: SessionParts, item: ItemId | None) -> bool:
    """Move the command of a tool call to the background."""
    call = None if item is None else parts.publisher.snapshot.call_of(item)
    return (item is None or call is not None) and parts.tool_contexts.leave(call)


def _submitter(parts: SessionParts, starter: RunStarter) -> PromptSubmitter:
    return PromptSubmitter(
        parts.services,
        recorder=parts.recorder,
        queue=parts.queue,
        message_index=parts.message_index,
        deferred=parts.deferred,
        commands=parts.commands,
        models=parts.models,
        runs=parts.runs,
        starter=starter,
    )


def _views(parts: SessionParts, starter: RunStarter, bash: UserBash) -> SessionViews:
    tree = BranchTree(parts.recorder, parts.runs)
    branches = _branches(parts, tree, starter)
    return SessionViews(
        models=ModelView(
            parts.models,
            services=parts.services,
            recorder=parts.recorder,
            config=parts.config,
            queue=parts.queue,
            hooks=parts.hooks,
            options=parts.deps.options,
            allowance=parts.workspace.allowance,
            redactor=parts.deps.redactor,
        ),
        tools=ToolView(parts.toolbox, recorder=parts.recorder, config=parts.config),
        permissions=PermissionView(parts.broker, parts.trust, parts.workspace.workspace.root),
        questions=parts.questions,
        tree=TreeView(
            tree,
            branches=branches,
            forks=Forks(
                parts.services,
                tree,
                recorder=parts.recorder,
                hooks=parts.hooks,
                root=parts.workspace.workspace.root,
                writer=parts.deps.fork_writer,
            ),
            recorder=parts.recorder,
            publisher=parts.publisher,
            hooks=parts.hooks,
            starter=starter,
        ),
        changes=_changes(parts),
        checkpoints=_checkpoints(parts, tree, branches, starter),
        queue=QueueView(parts.queue, recorder=parts.recorder, models=parts.models, starter=starter),
        switching=SessionSwitchHooks(parts.hooks),
        resources=ResourceView(
            parts.commands,
            recorder=parts.recorder,
            settings=parts.settings,
            reloads=_reloads(parts),
        ),
        programs=ProgramView(parts.recorder, queue=parts.queue, runs=parts.runs, bash=bash),
        tasks=parts.given_tasks,
        info=_info(parts),
    )


def _reloads(parts: SessionParts) -> Sequence[Reloadable]:
    """Return the resources that a reload reads again, in this order; each may depend on those before it."""
    # The folders that hooks name come last: behind the code of others, which may give other folders now.
    deps = parts.deps
    found = (deps.extensions, parts.settings, *deps.reloads, parts.servers, parts.hook_paths)
    return tuple(one for one in found if one is not None)


def _branches(parts: SessionParts, tree: BranchTree, starter: RunStarter) -> Branches:
    options = parts.deps.options
    return Branches(
        tree,
        services=parts.services,
        recorder=parts.recorder,
        models=parts.models,
        hooks=NavigationHooks(
            parts.hooks, recorder=parts.recorder, models=parts.models, options=options
        ),
        summaries=BranchSummaries(
            parts.services,
            models=parts.models,
            options=options,
            recorder=parts.recorder,
            usage=parts.usage,
        ),
        state=BranchState(
            parts.services,
            recorder=parts.recorder,
            models=parts.models,
            toolbox=parts.toolbox,
            usage=parts.usage,
            config=parts.config,
            seen=parts.seen,
        ),
        runs=parts.runs,
        starter=starter,
    )


def _changes(parts: SessionParts) -> ChangesView:
    return ChangesView(
        parts.services,
        changes=parts.changes,
        review=parts.review,
        checkpoints=parts.checkpoints,
        proposals=ProposalApplier(
            parts.services,
            workspace=parts.workspace,
            changes=parts.changes,
            deferred=parts.deferred,
        ),
        workspace=parts.workspace,
        background=parts.background,
        runs=parts.runs,
    )


def _checkpoints(
    parts: SessionParts, tree: BranchTree, branches: Branches, starter: RunStarter
) -> CheckpointView:
    return CheckpointView(
        parts.services,
        checkpoints=parts.checkpoints,
        changes=parts.changes,
        workspace=parts.workspace,
        deferred=parts.deferred,
        questions=parts.questions,
        background=parts.background,
        tree=tree,
        branches=branches,
        runs=parts.runs,
        starter=starter,
    )


def _info(parts: SessionParts) -> SessionView:
    return SessionView(
        EventsView(parts.publisher, parts.recorder),
        UserEdits(
            parts.services,
            changes=parts.changes,
            review=parts.review,
            deferred=parts.deferred,
        ),
        recorder=parts.recorder,
        config=parts.config,
        usage=parts.usage,
        workspace=parts.workspace,
        runs=parts.runs,
        snapshots=SnapshotSource(
            parts.services,
            recorder=parts.recorder,
            queue=parts.queue,
            broker=parts.broker,
            questions=parts.questions,
            config=parts.config,
            usage=parts.usage,
            checkpoints=parts.checkpoints,
        ),
    )


def build_executor(parts: SessionParts, run: ActiveRun) -> RunExecutor:
    """Build the executor of a run."""
    options = parts.deps.options
    transcript = RunTranscript(
        run, recorder=parts.recorder, message_index=parts.message_index, usage=parts.usage
    )
    inputs = RunInputHooks(
        run,
        hooks=parts.hooks,
        commands=parts.commands,
        trust=parts.trust,
        recorder=parts.recorder,
        queue=parts.queue,
        usage=parts.usage,
    )
    turns = TurnPreparation(
        run,
        prompts=parts.broker.prompts,
        budgets=parts.budgets,
        deferred=parts.deferred,
        compaction=parts.compaction,
    )
    requests = RunRequests(
        parts.models, toolbox=parts.toolbox, options=options, budgets=parts.budgets
    )
    attempts = Attempts(
        run,
        requests=requests,
        models=parts.models,
        options=options,
        queue=parts.queue,
        transcript=transcript,
        turns=turns,
        budgets=parts.budgets,
        compaction=parts.compaction,
    )
    return RunExecutor(
        run,
        loop=_loop(parts, run, requests=requests, ports=(transcript, inputs, turns)),
        models=parts.models,
        config=parts.config,
        usage=parts.usage,
        budgets=parts.budgets,
        queue=parts.queue,
        opening=_opening(parts, run, requests=requests, ports=(transcript, inputs, turns)),
        hooks=RunHooks(run.id, hooks=parts.hooks, usage=parts.usage, recorder=parts.recorder),
        attempts=attempts,
        ending=parts.ending,
    )


_Ports = tuple[RunTranscript, RunInputHooks, TurnPreparation]


def _opening(
    parts: SessionParts, run: ActiveRun, *, requests: RunRequests, ports: _Ports
) -> RunOpening:
    transcript, inputs, turns = ports
    checks: list[RunCheck | None] = [parts.trust, parts.servers]
    return RunOpening(
        run,
        recorder=parts.recorder,
        transcript=transcript,
        inputs=inputs,
        checkpoints=parts.checkpoints,
        checks=[one for one in checks if one is not None],
        budgets=parts.budgets,
        turns=turns,
        deferred=parts.deferred,
        preparation=RunPreparation(
            run,
            system_prompt=parts.system_prompt,
            requests=requests,
            toolbox=parts.toolbox,
            tools=parts.tool_contexts,
            hooks=parts.hooks,
            recorder=parts.recorder,
            compaction=parts.compaction,
        ),
    )


def _loop(
    parts: SessionParts, run: ActiveRun, *, requests: RunRequests, ports: _Ports
) -> LoopContext:
    transcript, inputs, turns = ports

    def context(call: ToolCall, output: Callable[[str], None]) -> ToolContext:
        return parts.tool_contexts.context(run, call, output)

    def limit(name: str) -> CallLimit | None:
        options = parts.deps.options
        if options.tool_timeout_s is None or not parts.toolbox.is_of_extension(name):
            return None
        return CallLimit(limit_s=options.tool_timeout_s, grace_s=options.tool_grace_s)

    clock = parts.services.clock
    return LoopContext(
        run=run.id,
        session=parts.services.session,
        demand=requests.next,
        tools=ToolRunner(
            tools=parts.toolbox.active,
            hooks=parts.hooks,
            policy=parts.broker,
            clock=clock,
            context=context,
            run=run.id,
            limit=limit,
        ),
        inbox=parts.queue,
        recording=transcript,
        intake=inputs,
        before_turn=turns,
        hooks=parts.hooks,
        publish=run.publish,
        clock=clock,
        new_id=parts.services.new_id,
        items=run.activity,
        turns=TurnCount(),
    )


class StartTools(Value, frozen=True, kw_only=True):
    """Initial tools of a session."""

    active: tuple[str, ...]
    """Names and presets; the caller's own tools come last and are always among them."""
    notices: tuple[str, ...] = ()
    """Notices for the user about the choice, one sentence each."""
    wants: Callable[[str], bool] = lambda _: True
    """Whether a tool of another server is to be active, by its name, once it is there."""


def choose_tools(
    asked: str | Sequence[str] | None,
    *,
    own: Sequence[Tool],
    brought: Sequence[Tool] = (),
    built_in: Sequence[Tool],
    settings: str | Sequence[str],
    path: Sequence[AnyEntry],
) -> StartTools:
    """Choose the request, else the session's earlier choice, else the settings.

    Args:
        asked: Request of the session's opener; None: no request.
        own: Tools that the session's opener supplies.
        brought: Tools of extensions: active unless a set was chosen.
        built_in: All other tools.
        settings: Default set when nothing was chosen.
        path: The session's current branch.
    """
    added = tuple(tool.spec.name for tool in own)
    chosen = tools_of(path) if asked is None else None
    if chosen is None:
        tokens = _tokens(settings if asked is None else asked)
        here = tuple(word for word in tokens if not is_of_server(word))
        if tokens and tokens[0].startswith(("+", "-")) and not (here and here[0] == tokens[0]):
            here = ("default", *here)
        others = tuple(tool.spec.name for tool in brought) if asked is None else ()
        return StartTools(active=(*here, *others, *added), wants=partial(_is_wanted, tokens))
    available = {tool.spec.name for tool in (*built_in, *brought, *own)}
    there = tuple(name for name in chosen if name in available)
    missing = ", ".join(name for name in chosen if name not in available and not is_of_server(name))
    notices = (f"the session was with tools that are not there now: {missing}",) if missing else ()
    return StartTools(
        active=(*(there or _tokens(settings)), *added),
        notices=notices,
        wants=partial(_is_wanted, chosen),
    )


def _is_wanted(tokens: Sequence[str], name: str) -> bool:
    """Return whether a choice of tools means one that was not there yet: by its name, or as one of no preset."""
    if f"-{name}" in tokens:
        return False
    starts_from_default = bool(tokens) and tokens[0][:1] in {"+", "-"}
    return starts_from_default or not {"default", name, f"+{name}"}.isdisjoint(tokens)


def _tokens(chosen: str | Sequence[str]) -> tuple[str, ...]:
    parts = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    return tuple(word for part in parts for word in part.replace(",", " ").split())
