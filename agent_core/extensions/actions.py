"""Actions of an extension in its session, outside of any event."""

from collections.abc import Mapping, Sequence
from typing import Literal, NoReturn

from agent_core.events import ThinkingLevel
from agent_core.extensions.ports import ExtensionDelivery
from agent_core.extensions.scope import ExecResult, ExtensionScope, run_program
from agent_core.kernel import EntryId, JsonValue
from agent_core.kernel.errors import ModelUnknown, Unsupported, UsageError
from agent_core.messages import UserContent
from agent_core.resources.offers import SlashCommand
from agent_core.tools.port import ToolInfo
from agent_core.workspace import NO_NEEDS
from agent_core.workspace.permissions.call_permission import Needs

ExtensionMessageContent = str | Sequence[UserContent]
OURS = "tiller."
"""Prefix of the types of Tiller's own entries."""
NOT_OFFERED: Mapping[str, str] = {
    "register_theme": "colours are the client's",
    "register_markdown_transformer": "a client draws with its own means; give a view",
}
"""Registrations of other agents' extension APIs that Tiller does not support, with the reason."""


class SessionChoices:
    """Choice of tools and models by an extension."""

    def __init__(self, scope: ExtensionScope) -> None:
        self._scope = scope

    @property
    def active_tools(self) -> tuple[str, ...]:
        """Names of the tools that the model sees."""
        return self._scope.session.tools.active

    @property
    def all_tools(self) -> tuple[str, ...]:
        """Names of all tools there are."""
        return self._scope.session.tools.all

    def describe_tools(self) -> tuple[ToolInfo, ...]:
        """Return all tools with description, JSON Schema, source, and whether the model sees them."""
        return self._scope.session.tools.describe()

    async def set_active_tools(self, names: str | Sequence[str]) -> None:
        """Choose the tools that the model sees: a preset, names, or `+name` and `-name`.

        Raises:
            ToolSetInvalid: Empty or unknown; the set stays.
        """
        await self._scope.session.tools.activate(names)

    def commands(self) -> Sequence[SlashCommand]:
        """List what can be written after a slash: commands, skills and prompt templates."""
        return self._scope.session.resources.commands()

    async def set_model(self, ref: str) -> bool:
        """Choose a model by name; False: there is none of that name, or it has no credentials."""
        try:
            _ = await self._scope.session.models.choose(ref)
        except ModelUnknown:
            return False
        return True

    @property
    def thinking(self) -> ThinkingLevel:
        """How hard the model thinks."""
        return self._scope.session.models.thinking

    async def set_thinking(self, level: ThinkingLevel) -> None:
        """Choose how hard the model thinks."""
        await self._scope.session.models.think(level)


class SessionActions(SessionChoices):
    """The deeds of an extension. They need the session: none of them while the extension is only being loaded.

    Each raises `ContextStale` when the extension was loaded anew or the session is over, and `Unsupported` too early.
    """

    async def send_message(
        self,
        content: ExtensionMessageContent,
        *,
        custom_type: str,
        delivery: ExtensionDelivery = "append",
        display: bool = True,
        details: JsonValue = None,
    ) -> None:
        """Send a message as a program, as `AgentSession.add` does.

        Raises:
            UsageError: The message is empty, or `custom_type` is one of Tiller's own.
            QueueFull, ModelUnknown, StorageError: As `AgentSession.add`.
        """
        _ = await self._scope.session.add(
            content,
            custom_type=_foreign(custom_type),
            delivery=delivery,
            display=display,
            details=details,
        )

    async def send_user_message(
        self,
        content: ExtensionMessageContent,
        *,
        delivery: Literal["auto", "steer", "followUp"] = "auto",
    ) -> None:
        """Send a message to the model as the user; a run begins when the session is idle.

        Hooks see it with `source` `program`. It runs no command and expands no skill or template.

        Raises:
            QueueFull, ModelUnknown, StorageError: As `AgentSession.prompt`.
        """
        _ = await self._scope.session.prompt(content, delivery=delivery, source="program")

    async def append_entry(self, custom_type: str, data: JsonValue = None) -> EntryId:
        """Keep data in the session's file, in this branch; no model sees it.

        Raises:
            UsageError: `custom_type` is one of Tiller's own.
        """
        return await self._scope.session.programs.keep(custom_type, data)

    @property
    def session_name(self) -> str | None:
        """Name of the session; None: it has no name."""
        return self._scope.session.tree.title

    async def set_session_name(self, name: str | None) -> None:
        """Name the session; None takes the name off."""
        await self._scope.session.tree.rename(name)

    async def set_label(self, entry: EntryId, label: str | None) -> None:
        """Mark an entry; None takes the mark off.

        Raises:
            EntryUnknown: There is no such entry.
        """
        await self._scope.session.tree.label(entry, label)

    async def exec(
        self,
        command: str,
        arguments: Sequence[str] = (),
        *,
        timeout_s: float | None = None,
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> ExecResult:
        """Run a program in the workspace, contained as tools are. In hooks use `ctx.exec`, which stops their clock.

        Raises:
            WorkspaceError: It cannot be started.
        """
        argv = (command, *arguments)
        workspace = self._scope.services.workspace
        return await run_program(workspace, argv, timeout_s=timeout_s, needs=needs)

    def __getattr__(self, name: str) -> NoReturn:
        if why := NOT_OFFERED.get(name):
            message = f"api.{name} is not offered: {why}"
            raise Unsupported(message)
        raise AttributeError(name)


def _foreign(custom_type: str) -> str:
    if custom_type.startswith(OURS):
        message = f"{custom_type!r} begins with {OURS!r}, which is Tiller's own; take another name"
        raise UsageError(message)
    return custom_type
