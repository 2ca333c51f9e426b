"""Configuration of a bridge, as a plain value."""

from pathlib import Path
from typing import Final

from agent_core.events import PermissionMode
from agent_core.kernel.values import Value

EVERYBODY: Final = "*"
"""Entry of a list of people that stands for all of them."""


class ChatWorkspace(Value, frozen=True, kw_only=True):
    """A workspace that chats can be bound to."""

    name: str
    """Name in `/bind`."""
    folder: Path
    model: str | None = None
    """Model of new sessions; None: that of the settings."""
    mode: PermissionMode | None = None
    """Permission mode of new sessions; None: that of the settings."""
    approvers: frozenset[str] | None = None
    """Ids of the people who may approve in it; None: those of the bridge."""


class BridgeConfig(Value, frozen=True, kw_only=True):
    """How a bridge is set up."""

    client: str
    """Name of the platform in the events of a session, such as `Lark`."""
    workspaces: tuple[ChatWorkspace, ...]
    """At least one; the first is that of chats that are not bound."""
    talkers: frozenset[str]
    """Ids of the people who may write to the bot; `*`: everybody."""
    approvers: frozenset[str]
    """Ids of the people who may answer permission requests and plans; `*` is not accepted here."""
    admins: frozenset[str] = frozenset()
    """Ids of the people who may bind chats to workspaces."""
    allow_direct: bool = True
    """Whether direct chats are served."""
    allow_groups: bool = True
    """Whether groups are served."""
    context_messages: int = 0
    """Number of the last messages of a group that are sent with a prompt; 0: none."""
    merge_s: float = 0.6
    """Time in which the messages of one person are one prompt."""

    def workspace(self, name: str) -> ChatWorkspace | None:
        """Return a workspace by its name."""
        return next((workspace for workspace in self.workspaces if workspace.name == name), None)

    def may_talk(self, person: str) -> bool:
        """Return whether a person may write to the bot."""
        return EVERYBODY in self.talkers or person in self.talkers

    def may_approve(self, person: str, workspace: str) -> bool:
        """Return whether a person may answer permission requests in a workspace."""
        bound = self.workspace(workspace)
        approvers = self.approvers if bound is None or bound.approvers is None else bound.approvers
        return person in approvers
