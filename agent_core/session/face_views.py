"""The named views of a session, each of which looks at it from one side."""

from agent_core.kernel import SessionId
from agent_core.session.change_view import ChangesView
from agent_core.session.checkpoint_view import CheckpointView
from agent_core.session.parts import Parts
from agent_core.session.permission_view import PermissionView
from agent_core.session.program_view import ProgramView
from agent_core.session.question_view import QuestionView
from agent_core.session.queue_view import QueueView
from agent_core.session.resource_view import ResourceView
from agent_core.session.runs import Runs
from agent_core.session.starting import Starter
from agent_core.session.switching import Switching
from agent_core.session.tree_view import TreeView
from agent_core.session.views import ModelView, SessionView, ToolView


class Views:
    """What `AgentSession` shows beside its verbs."""

    def __init__(self, parts: Parts, runs: Runs, starter: Starter) -> None:
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
        """What is asked of people, and the rules that answer for them."""
        return PermissionView(self._parts)

    @property
    def questions(self) -> QuestionView:
        """What people are asked because nobody else can know it."""
        return QuestionView(self._parts)

    @property
    def tree(self) -> TreeView:
        """The branches of the session."""
        return TreeView(self._parts, self._runs, self._starter)

    @property
    def changes(self) -> ChangesView:
        """What the session changed, and what people say to it."""
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
    def switching(self) -> Switching:
        """What is asked and told when a window goes to another session."""
        return Switching(self._parts)

    @property
    def resources(self) -> ResourceView:
        """What can be written after a slash, and reading everything anew."""
        return ResourceView(self._parts)

    @property
    def programs(self) -> ProgramView:
        """What programs inside of the session keep in it and know of it."""
        return ProgramView(self._parts, self._runs)

    @property
    def info(self) -> SessionView:
        """What can be known of the session."""
        return SessionView(self._parts, self._runs)
