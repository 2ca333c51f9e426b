"""The port of tasks: how their sessions are opened, and what they share with the session that gave them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.events import (
    Budgets,
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
    Event,
    EventSubscription,
    InputSource,
    PermissionRequest,
    RunParent,
    RunResult,
    ThinkingLevel,
)
from agent_core.kernel import RunId, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.resources.agents import AgentDefinition
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.permissions.permission_prompts import PermissionPrompts
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.runs.usage import RunBudgets
from agent_core.storage.port import StoredSession
from agent_core.tools import Tool
from agent_core.tools.port import BackgroundCommands

if TYPE_CHECKING:
    from agent_core.workspace.git.worktrees.service import Worktrees


EDITS: Final = (EditApplied, EditConflict, EditProposed, EditRejected)
"""Events of edits that the call of a tool makes."""


class TaskSession(Protocol):
    """The session of a task; an `AgentSession`."""

    async def prompt(self, content: str, *, source: InputSource) -> object:
        """Send a prompt; returns when it is stored."""
        ...

    async def retry(self, run: RunId) -> object:
        """Go on with the newest run.

        Raises:
            RunMismatch: It is not the newest.
            RunNotActive: It left nothing undone.
        """
        ...

    async def wait_idle(self) -> RunResult | None:
        """Wait until nothing goes on; return the newest run's result."""
        ...

    def subscribe(self) -> EventSubscription:
        """Open a reader of all events from now on; the caller closes it."""
        ...


class TaskOpening(Value, frozen=True, kw_only=True):
    """Which session is to be opened for a task."""

    id: str
    session: SessionId
    is_new: bool
    """Whether the session begins now; otherwise it is continued."""
    folder: Path | None
    """Folder of its worktree; None: it works in the workspace."""
    agent: AgentDefinition
    model: str | None
    """None: that of the session that gives the task."""
    tools: tuple[str, ...]
    budget: Budgets
    outer: "OuterSession"
    on_activity: Callable[[str], None] = lambda _: None
    """Called with the title of what an external agent does."""


class OuterSession(Value, frozen=True, kw_only=True):
    """Parts of the session that gave a task, which the task's session uses in the place of its own."""

    parent: RunParent
    permissions: PermissionState
    prompts: PermissionPrompts
    questions: QuestionPrompts
    workspace: WorkspaceContext
    mcp_tools: tuple[Tool, ...]
    model: str | None
    thinking: ThinkingLevel
    background: Callable[[], BackgroundCommands]
    shown_as: Callable[[PermissionRequest], PermissionRequest]
    """Returns a permission request of the task as it is shown in the outer session."""
    edits: "OuterEdits | None"
    """None: the task has files of its own."""
    on_spent: Callable[[Usage], None]
    exhausted: Callable[[], str | None]
    """Returns which budget of the outer session is used up, as a sentence; None: none is."""
    budgets: RunBudgets
    """Budgets of the outer session, in which the calls of the task reserve what they may use."""


class OuterEdits(Value, frozen=True, kw_only=True):
    """Owner of the changes of files that a task makes in the workspace."""

    changes: ChangeRecord
    current_run: Callable[[], RunId | None]
    """Returns the run of the outer session that goes on; None: it has none."""
    publish: Callable[[Event], object]
    """Publishes an event of an edit in the outer session."""


class TaskSessions(Protocol):
    """Opens and reads the sessions of tasks."""

    had_background: bool
    """Whether the session ever had a task in the background: only then models see the tools that look after those."""

    def worktrees(self) -> "Worktrees":
        """Return the worktrees of the user.

        Raises:
            ToolError: The files of the workspace are not on this machine.
        """
        ...

    def agents(self) -> Sequence[AgentDefinition]:
        """Return the agents that tasks can be given to."""
        ...

    def open(self, opening: TaskOpening) -> AbstractAsyncContextManager[TaskSession]:
        """Open the session of a task; leaving the context settles it.

        Raises:
            TillerError: It cannot be opened; the text says why.
        """
        ...

    async def read(self, session: SessionId) -> StoredSession:
        """Read the session of a task as it is stored.

        Raises:
            SessionNotFound: Nothing was said in it.
            StorageUnavailable: It cannot be read.
        """
        ...
