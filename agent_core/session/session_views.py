"""The named views of a session, each of which looks at it from one side."""

from agent_core.kernel import SessionId
from agent_core.session.changes.checkpoints.view import CheckpointView
from agent_core.session.changes.view import ChangesView
from agent_core.session.context import SessionContext
from agent_core.session.history.tree_view import TreeView
from agent_core.session.input.queue_view import QueueView
from agent_core.session.input.resource_view import ResourceView
from agent_core.session.permissions.question_view import QuestionView
from agent_core.session.permissions.view import PermissionView
from agent_core.session.program_view import ProgramView
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.runs.starter import RunStarter
from agent_core.session.switch_hooks import SessionSwitchHooks
from agent_core.session.views import ModelView, SessionView, ToolView


class SessionViews:
    """Named views and properties of `AgentSession`."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot, starter: RunStarter) -> None:
        self._parts = parts
        self._runs = runs
        self._starter = starter

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._parts.session

    @property
    def models(self) -> ModelView:
        """The choice of model and thinking level."""
        return ModelView(self._parts)

    @property
    def tools(self) -> ToolView:
        """The tools the model sees."""
        return ToolView(self._parts)

    @property
    def permissions(self) -> PermissionView:
        """Permission requests, and the rules that answer them."""
        return PermissionView(self._parts)

    @property
    def questions(self) -> QuestionView:
        """Questions that only the user can answer."""
        return QuestionView(self._parts)

    @property
    def tree(self) -> TreeView:
        """The branches of the session."""
        return TreeView(self._parts, self._runs, self._starter)

    @property
    def changes(self) -> ChangesView:
        """Changes of the session, and the user's decisions about them."""
        return ChangesView(self._parts, self._runs)

    @property
    def checkpoints(self) -> CheckpointView:
        """The moments to which files and conversation can be taken back."""
        return CheckpointView(self._parts, self._runs, self._starter)

    @property
    def queue(self) -> QueueView:
        """Words that wait."""
        return QueueView(self._parts, self._starter)

    @property
    def switching(self) -> SessionSwitchHooks:
        """Hooks for the switch of a window to another session."""
        return SessionSwitchHooks(self._parts)

    @property
    def resources(self) -> ResourceView:
        """Slash commands, and the reload of all resources."""
        return ResourceView(self._parts)

    @property
    def programs(self) -> ProgramView:
        """Data that programs inside of the session store in it, and its state for them."""
        return ProgramView(self._parts, self._runs)

    @property
    def info(self) -> SessionView:
        """State of the session."""
        return SessionView(self._parts, self._runs)
