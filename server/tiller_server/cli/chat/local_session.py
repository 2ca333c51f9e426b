"""A session that this process has loaded, as a conversation uses it."""

from collections.abc import Collection, Sequence

import anyio

from agent_core.assembly import SessionRequest
from agent_core.channels import PermissionAnswers, QuestionAnswers
from agent_core.events import Event, EventSubscription, PermissionMode, UiTitle
from agent_core.messages import UserContent
from agent_core.session import AgentSession
from tiller_server.cli.chat.context import ChatDialog, ChatLineOutcome
from tiller_server.cli.chat.session_switch import may_leave
from tiller_server.cli.chat.slash_commands import COMMANDS, MODES, OTHER_NAMES, stop_session
from tiller_server.cli.terminal.run_renderer import DIM, YELLOW


class LocalChatSession:
    """A session of this process."""

    def __init__(self, session: AgentSession, request: SessionRequest) -> None:
        """Prepare it.

        Args:
            session: The session.
            request: How it was opened.
        """
        self._session = session
        self._request = request

    @property
    def permissions(self) -> PermissionAnswers:
        """Where permission requests are answered."""
        return self._session.permissions

    @property
    def questions(self) -> QuestionAnswers:
        """Where questions are answered."""
        return self._session.questions

    @property
    def is_busy(self) -> bool:
        """Whether a run, a compaction or a command of the user is active."""
        activity = self._session.info.snapshot().activity
        return bool(activity.run or activity.compaction or activity.bash)

    @property
    def commands(self) -> Collection[str]:
        """Names of the commands of the conversation itself, aliases included."""
        return (*COMMANDS, *OTHER_NAMES)

    @property
    def offered(self) -> Collection[str]:
        """Names of the skills, templates and commands of extensions."""
        return [one.name for one in self._session.resources.commands()]

    @property
    def title(self) -> str:
        """The title that an extension gave last; empty when there is none."""
        views = self._session.info.snapshot().views
        titles = [str(one.view.get("text")) for one in views if isinstance(one, UiTitle)]
        return titles[-1] if titles else ""

    def runs(self, text: str) -> bool:
        """Return whether a prompt is a command of an extension, which need not show anything."""
        return self._session.resources.runs(text)

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False
    ) -> EventSubscription:
        """Open a reader of its events, or `only` of some types; with `partials` it shows arguments as they grow."""
        return self._session.subscribe(only=only, partials=partials)

    async def follow(self) -> str:
        """Wait: the session publishes its events itself, and stays for as long as this process has it open."""
        await anyio.sleep_forever()
        return ""

    async def stop(self) -> str:
        """Stop what is active; return the queued text that the user gets back into the line, empty for none."""
        return await stop_session(self._session) or ""

    async def prompt(self, content: Sequence[UserContent]) -> None:
        """Send a prompt; during a run it steers the run."""
        _ = await self._session.prompt(tuple(content), delivery="auto")

    async def run_shell(self, command: str, *, exclude_from_context: bool) -> None:
        """Run a command of the user."""
        _ = await self._session.execute_bash(command, exclude_from_context=exclude_from_context)

    async def next_mode(self) -> PermissionMode:
        """Set the next permission mode that the user's settings allow, and return it."""
        info = self._session.info
        allowed = MODES[: MODES.index(info.allowed_mode) + 1]
        place = allowed.index(info.config.mode) if info.config.mode in allowed else -1
        mode = allowed[(place + 1) % len(allowed)]
        _ = info.configure(mode=mode)
        return mode

    async def run_command(self, dialog: ChatDialog, name: str, arguments: str) -> ChatLineOutcome:
        """Run a command of the conversation."""
        command = COMMANDS[OTHER_NAMES.get(name, name)]
        if command.at_rest and self.is_busy:
            dialog.tell(f"A run is active. Press Esc to stop it, then type /{name} again.", YELLOW)
            return None
        dialog.tell(f"> /{name} {arguments}".rstrip())
        context = _LocalContext(dialog, self._session, self._request)
        return await may_leave(self._session, await command.run(context, arguments))


class _LocalContext:
    """A dialog in a session of this process."""

    def __init__(self, dialog: ChatDialog, session: AgentSession, request: SessionRequest) -> None:
        self._dialog = dialog
        self.session = session
        self.request = request
        self.choose = dialog.choose
        self.ask = dialog.ask
        self.ask_secret = dialog.ask_secret
        self.to_clipboard = dialog.to_clipboard
        self.tell_markdown = dialog.tell_markdown

    @property
    def columns(self) -> int:
        """How wide what is told may be."""
        return self._dialog.columns

    def tell(self, text: str, style: str = DIM) -> None:
        """Show something."""
        self._dialog.tell(text, style)
