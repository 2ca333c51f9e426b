"""The configuration in force: read from its owners, published when it changes."""

from typing import Protocol

from agent_core.events import (
    Budgets,
    PermissionMode,
    QueueMode,
    SessionConfig,
    SessionConfigured,
)
from agent_core.kernel import JsonObject
from agent_core.resources.folder_watch import FolderWatches
from agent_core.session.context import EventPublisher, SessionOptions, WorkspaceContext
from agent_core.session.input.queue import InputQueue
from agent_core.session.model_selection import ModelSelection, Servers
from agent_core.session.runs.usage import check_tighter
from agent_core.session.tools.registry import ToolRegistry


class FollowsSettings(Protocol):
    """The settings of a session, which others change while it is open."""

    async def configure(self, values: JsonObject) -> None:
        """Apply the settings of an editor's configuration in place of its earlier ones."""
        ...

    async def watch(self, watches: FolderWatches) -> None:
        """Read the settings again whenever one of their files has changed; problems in them are reported."""
        ...


class ActiveConfig:
    """Reads the configuration of the next request from its owners, and publishes changes of it."""

    def __init__(
        self,
        publisher: EventPublisher,
        *,
        models: ModelSelection,
        toolbox: ToolRegistry,
        queue: InputQueue,
        workspace: WorkspaceContext,
        options: SessionOptions,
    ) -> None:
        self._publisher = publisher
        self._models = models
        self._toolbox = toolbox
        self._queue = queue
        self._workspace = workspace
        self._options = options

    def now(self) -> SessionConfig:
        """Return the configuration in force for the next request."""
        return SessionConfig(
            model=self._models.ref,
            thinking=self._models.thinking,
            mode=self._workspace.permissions.mode,
            auto_compact=self._options.auto_compact,
            steering=self._queue.steering_mode,
            follow_up=self._queue.follow_up_mode,
            tools=self._toolbox.active_names,
            budgets=self._workspace.allowance.effective,
            offer_branch_summary=self._options.compaction.offer_branch_summary,
        )

    def publish(self) -> None:
        """Publish the configuration in force."""
        self._publisher.publish(SessionConfigured(config=self.now()))

    def publish_change(self, before: SessionConfig) -> None:
        """Publish the configuration in force if it differs from an earlier one."""
        if self.now() != before:
            self.publish()

    async def refresh_models(self, *, servers: Servers = "keep") -> None:
        """Read models and keys again; publish the configuration if another model is in force after that."""
        models = self._models
        before = (models.ref, models.thinking)
        await models.refresh(servers=servers)
        if (models.ref, models.thinking) != before:
            self.publish()

    def configure(
        self,
        *,
        mode: PermissionMode | None = None,
        auto_compact: bool | None = None,
        steering: QueueMode | None = None,
        follow_up: QueueMode | None = None,
        budgets: Budgets | None = None,
    ) -> SessionConfig:
        """Set options, as `SessionView.configure` describes."""
        if budgets is not None:
            check_tighter(self._workspace.allowance.ceiling, budgets)
            self._workspace.allowance.requested = budgets
        if mode is not None:
            self._workspace.permissions.mode = mode
        if auto_compact is not None:
            self._options.auto_compact = auto_compact
        if steering is not None:
            self._queue.steering_mode = steering
        if follow_up is not None:
            self._queue.follow_up_mode = follow_up
        self.publish()
        return self.now()
