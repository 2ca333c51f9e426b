"""The session: the one object through which front ends use it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from agent_core.events import Event, EventSubscription, InjectedBy, InputSource, RunResult
from agent_core.kernel import ItemId, JsonValue, MessageId, RunId, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import UserContent
from agent_core.session.changes.views import ChangesView, CheckpointView
from agent_core.session.context import SessionServices
from agent_core.session.history.compaction_request import CompactionRequests, CompactReceipt
from agent_core.session.history.tree import TreeView
from agent_core.session.input.commands import ResourceView
from agent_core.session.input.submission import (
    AddDelivery,
    Deliver,
    IfIdle,
    PromptSubmitter,
    QueueView,
    Receipt,
)
from agent_core.session.permissions.question_prompts import PermissionView, QuestionPrompts
from agent_core.session.runs.cancel import ActivityCanceller, CancelResult, CancelTarget, QueueFate
from agent_core.session.runs.executor import RunStarter
from agent_core.session.runs.recovery import RunRetrier
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.tools.user_bash import BashResult, UserBash
from agent_core.session.views import (
    ModelView,
    ProgramView,
    SessionSwitchHooks,
    SessionView,
    ToolView,
)
from agent_core.tools.port import BackgroundCommand

if TYPE_CHECKING:
    from agent_core.session.tools.tasks import SessionTasks


class SessionViews(Value, frozen=True, kw_only=True):
    """The named views of a session; `AgentSession` has a property for each."""

    models: ModelView
    tools: ToolView
    permissions: PermissionView
    questions: QuestionPrompts
    tree: TreeView
    changes: ChangesView
    checkpoints: CheckpointView
    queue: QueueView
    switching: SessionSwitchHooks
    resources: ResourceView
    programs: ProgramView
    tasks: "Callable[[], SessionTasks]"
    info: SessionView


class AgentSession:  # noqa: PLR0904 - the face of a session: verbs, and one property for each view
    """One conversation in one workspace. It lives inside the context that opened it; methods are for the loop's thread."""

    def __init__(
        self,
        services: SessionServices,
        *,
        views: SessionViews,
        runs: ActivitySlot,
        starter: RunStarter,
        submitter: PromptSubmitter,
        retrier: RunRetrier,
        canceller: ActivityCanceller,
        compactions: CompactionRequests,
        bash: UserBash,
        stop_background: Callable[[str], Awaitable[BackgroundCommand]],
        leave: Callable[[ItemId | None], bool],
    ) -> None:
        self._services = services
        self._views = views
        self._runs = runs
        self._starter = starter
        self._submitter = submitter
        self._retrier = retrier
        self._canceller = canceller
        self._compactions = compactions
        self._bash = bash
        self._stop_background = stop_background
        self._leave = leave

    async def prompt(
        self,
        content: str | Sequence[UserContent],
        *,
        delivery: Deliver | None = None,
        message_id: MessageId | None = None,
        if_idle: IfIdle = "start",
        expected_run: RunId | None = None,
        source: InputSource = "person",
    ) -> Receipt:
        """Send a prompt; returns when it is stored, not when it is answered.

        Args:
            content: The prompt.
            delivery: How to deliver it during a run: `steer` inside the run, `followUp` after it, `auto` steers;
                `reject` and None refuse. During a compaction all but `reject` are queued.
            message_id: The caller's id: a prompt that is sent again is recognised, also in another process.
            if_idle: How to proceed if the session is idle: start a run, queue the prompt until it is sent, or refuse.
            expected_run: Refuse unless this is the current run.
            source: The author. The prompt of a program runs no commands, and expands no skills and templates.

        Raises:
            SessionBusy: A run is going on and `delivery` refuses.
            RunMismatch: Another run, or none, is going on than `expected_run`.
            RunNotActive: Nothing runs and `if_idle` is `reject`.
            QueueFull: Too many messages are queued.
            ModelUnknown: There is no usable model.
            ImagesUnsupported: The prompt has images, and the model is sent none; nothing is stored.
            FilesUnsupported: The prompt has PDF files, and the model is sent none; nothing is stored.
            StorageError: The prompt could not be written; nothing of it is stored.
        """
        return await self._submitter.prompt(
            content,
            delivery=delivery,
            message_id=message_id,
            if_idle=if_idle,
            expected_run=expected_run,
            source=source,
        )

    async def steer(
        self,
        content: str | Sequence[UserContent],
        *,
        message_id: MessageId | None = None,
        if_idle: IfIdle = "start",
        expected_run: RunId | None = None,
    ) -> Receipt:
        """Send a message to the current run: the model gets it with its next request."""
        return await self.prompt(
            content,
            delivery="steer",
            message_id=message_id,
            if_idle=if_idle,
            expected_run=expected_run,
        )

    async def follow_up(
        self, content: str | Sequence[UserContent], *, message_id: MessageId | None = None
    ) -> Receipt:
        """Send a message that is delivered when the current run would end; at once if the session is idle."""
        return await self.prompt(content, delivery="followUp", message_id=message_id)

    async def retry(self, run: RunId) -> Receipt:
        """Go on with the newest run where it was interrupted or failed; nothing that the user said is repeated.

        It is a run of its own. A run that was retried already is not retried again: the receipt names the other.

        Raises:
            SessionBusy: Something is going on.
            RunMismatch: It is not the newest run of this branch.
            RunNotActive: It left nothing undone.
            ModelUnknown: There is no usable model.
        """
        return await self._retrier.retry(run)

    async def abort(
        self,
        *,
        run: RunId | None = None,
        item: ItemId | None = None,
        scope: CancelTarget = "session",
        queue: QueueFate = "keep",
        grace_s: float | None = None,
        wait_s: float | None = None,
    ) -> CancelResult:
        """Stop the current activity (or one tool call of it); return after its last event.

        Args:
            run: Stop only this run; a late cancel never hits the next one.
            item: Stop only this tool call; the run continues. Returns when the call and its processes have ended.
            scope: `run` does not stop a requested compaction. `session` stops that too, and the user's own command,
                unless a run or a tool call is named.
            queue: How queued messages are handled: kept, with the queue paused; returned in the result; or dropped.
            grace_s: Time of processes between the request to end and the kill, at most 4 s; None: 0.15 s.
            wait_s: Maximum wait for the end; None: 5 s. After that the run is abandoned.
        """
        return await self._canceller.cancel(
            run=run,
            item=item,
            scope=scope,
            queue=queue,
            grace_s=grace_s,
            wait_s=wait_s,
        )

    async def execute_bash(self, command: str, *, exclude_from_context: bool = False) -> BashResult:
        """Run a command of the user's own as the tool `bash` would, without asking; also while a run goes on.

        It enters the conversation at once, or when what goes on is over; cancelled, with what it had written.

        Args:
            command: For the shell.
            exclude_from_context: Keep it in the session, but never show it to the model.

        Raises:
            SessionBusy: Another command of the user is running.
            UsageError: It is empty.
            WorkspaceError: It could not be started; nothing of it is kept.
        """
        self._starter.check_open()
        return await self._bash.execute(command, exclude_from_context=exclude_from_context)

    async def stop_background(self, id_: str) -> BackgroundCommand:
        """Stop a background command for the user; an unknown one is a `ToolError`."""
        return await self._stop_background(id_)

    def move_to_background(self, item: ItemId | None = None) -> bool:
        """Move the command of a tool call (None: the newest) to the background; return whether there is one."""
        return self._leave(item)

    async def add(
        self,
        content: str | Sequence[UserContent],
        *,
        custom_type: str,
        delivery: AddDelivery = "append",
        display: bool = True,
        details: JsonValue = None,
    ) -> Receipt:
        """Send a message as a program: the model reads it as a user message, people see that a program sent it.

        Returns when the message is in the session file; a session without any prompt has no file yet.

        Args:
            content: The message.
            custom_type: The program's own name for this kind of message.
            delivery: `append` adds it to the conversation without a request to the model: at once, or at the end of
                the current turn. `steer` delivers it inside the run, `followUp` when the run has nothing left to do;
                both start a run if the session is idle. `nextTurn` delivers it with the user's next prompt.
            display: Whether people see it.
            details: Data for the program's front end, stored with the message; the model never sees it.

        Raises:
            UsageError: There is no `custom_type`, or the message is empty.
            QueueFull: Too many messages are queued.
            ModelUnknown: A run would start, and there is no usable model.
            StorageError: The message could not be written; nothing of it is stored.
        """
        mark = InjectedBy(custom_type=custom_type, display=display, details=details)
        return await self._submitter.add(content, mark=mark, delivery=delivery)

    async def compact(
        self, instructions: str | None = None, *, keep_recent_tokens: int | None = None
    ) -> CompactReceipt:
        """Summarise the older part of the conversation; an active run is cancelled first.

        Returns as soon as the compaction has started; `compaction.ended` reports its result.

        Args:
            instructions: The focus of the summary.
            keep_recent_tokens: Tokens at the end that are kept as they are; None: the value of the settings.

        Raises:
            ModelUnknown: There is no usable model.
            SessionBusy: A compaction is active already, also one of the active run.
        """
        return await self._compactions.request(
            instructions=instructions, keep_recent_tokens=keep_recent_tokens
        )

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False, backlog: bool = True
    ) -> EventSubscription:
        """Open a reader of all events, or `only` of some types, for the caller to close; `backlog`: earlier notices first."""
        return self._services.publisher.subscribe(only=only, partials=partials, backlog=backlog)

    async def wait(self, run: RunId) -> RunResult | None:
        """Wait for a run's end; None when the run is not known (any more)."""
        return await self._runs.wait(run)

    async def wait_idle(self) -> RunResult | None:
        """Wait until nothing goes on; gives the newest run's result, None when there was no run."""
        return await self._runs.wait_idle()

    async def close(self) -> None:
        """Cancel what goes on, write everything, let the file go. Idempotent."""
        if not self._starter.closed:
            self._starter.closed = True
            await self._canceller.end_everything()

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._services.session

    @property
    def models(self) -> ModelView:
        """The choice of model and thinking level."""
        return self._views.models

    @property
    def tools(self) -> ToolView:
        """The tools the model sees."""
        return self._views.tools

    @property
    def permissions(self) -> PermissionView:
        """Permission requests, and the rules that answer them."""
        return self._views.permissions

    @property
    def questions(self) -> QuestionPrompts:
        """Questions that only the user can answer."""
        return self._views.questions

    @property
    def tree(self) -> TreeView:
        """The branches of the session."""
        return self._views.tree

    @property
    def changes(self) -> ChangesView:
        """Changes of the session, and the user's decisions about them."""
        return self._views.changes

    @property
    def checkpoints(self) -> CheckpointView:
        """The moments to which files and conversation can be taken back."""
        return self._views.checkpoints

    @property
    def queue(self) -> QueueView:
        """Words that wait."""
        return self._views.queue

    @property
    def switching(self) -> SessionSwitchHooks:
        """Hooks for the switch of a window to another session."""
        return self._views.switching

    @property
    def resources(self) -> ResourceView:
        """Slash commands, and the reload of all resources."""
        return self._views.resources

    @property
    def programs(self) -> ProgramView:
        """Data that programs inside of the session store in it, and its state for them."""
        return self._views.programs

    @property
    def tasks(self) -> "SessionTasks":
        """The tasks that the session gave to other agents."""
        return self._views.tasks()

    @property
    def info(self) -> SessionView:
        """State of the session."""
        return self._views.info
