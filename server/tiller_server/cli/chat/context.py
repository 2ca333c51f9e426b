"""Interface between a conversation and its commands."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

import anyio

from agent_core.assembly import SessionRequest
from agent_core.channels import ChannelSession
from agent_core.events import PermissionMode
from agent_core.kernel.values import Value
from agent_core.messages import UserContent
from agent_core.session import AgentSession
from tiller_server.cli.terminal.run_renderer import DIM


class Switch(Value, frozen=True, kw_only=True):
    """The conversation goes on in another session, or ends."""

    request: SessionRequest | None
    """None: it ends."""
    text: str = ""
    """Words to begin the next line with."""
    code: int = 0


class Refill(Value, frozen=True):
    """The conversation goes on as it is, and the next line begins with these words."""

    text: str


ChatLineOutcome = Switch | Refill | None
"""Effect of a line on the conversation; None: the next line is read."""


class ChatDialog(Protocol):
    """Dialog of a command with the user."""

    @property
    def columns(self) -> int:
        """How wide what is told may be."""
        ...

    def tell(self, text: str, style: str = DIM) -> None:
        """Show something."""
        ...

    def tell_markdown(self, text: str) -> None:
        """Show Markdown."""
        ...

    async def choose(
        self, title: str, choices: Sequence[str], *, marked: int = 0
    ) -> str | int | None:
        """Ask the user to choose; return the index of a choice, other text that was typed, or None for neither.

        Args:
            title: The question.
            choices: One line each.
            marked: Index of the choice that is marked at first.
        """
        ...

    async def ask(self, title: str) -> str | None:
        """Ask for a text; None: the user cancelled."""
        ...

    async def ask_secret(self, title: str) -> str | None:
        """Ask for a text that is not shown and not kept in the history; None: the user cancelled."""
        ...

    def to_clipboard(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal's machine, if the terminal can do that."""
        ...


class ChatContext(ChatDialog, Protocol):
    """A conversation in a session of this process, as its commands see it."""

    @property
    def session(self) -> AgentSession:
        """The session that is talked in."""
        ...

    @property
    def request(self) -> SessionRequest:
        """How it was opened."""
        ...


class ChatSession(ChannelSession, Protocol):
    """A session as a conversation uses it: one of this process, or one that the daemon has loaded.

    Each action raises a TillerError when the session refuses it.
    """

    @property
    def is_busy(self) -> bool:
        """Whether a run, a compaction or a command of the user is active."""
        ...

    @property
    def commands(self) -> Collection[str]:
        """Names of the commands of the conversation itself, aliases included."""
        ...

    @property
    def offered(self) -> Collection[str]:
        """Names of the skills, templates and commands of extensions."""
        ...

    @property
    def title(self) -> str:
        """The title that an extension gave last; empty when there is none."""
        ...

    def runs(self, text: str) -> bool:
        """Return whether a prompt is a command of an extension, which need not show anything."""
        ...

    async def follow(self) -> str:
        """Publish the events of the session for as long as it lasts; return why it is gone, for the user."""
        ...

    async def stop(self) -> str:
        """Stop what is active; return the queued text that the user gets back into the line, empty for none."""
        ...

    async def prompt(self, content: Sequence[UserContent]) -> None:
        """Send a prompt; during a run it steers the run."""
        ...

    async def run_shell(self, command: str, *, exclude_from_context: bool) -> None:
        """Run a command of the user."""
        ...

    async def next_mode(self) -> PermissionMode:
        """Set the next permission mode that the user's settings allow, and return it."""
        ...

    async def run_command(self, dialog: ChatDialog, name: str, arguments: str) -> ChatLineOutcome:
        """Run a command of the conversation."""
        ...


class ChatCommand(Value, frozen=True, kw_only=True):
    """One of them."""

    hint: str
    about: str
    run: Callable[[ChatContext, str], Awaitable[ChatLineOutcome]]
    values: tuple[str, ...] = ()
    """Possible values of the argument, when they are the same in every session."""
    takes_file: bool = False
    """Its argument is a path of the workspace."""
    at_rest: bool = False
    """It has to wait for the end of what goes on."""


async def is_kept(session: AgentSession) -> bool:
    """Return whether the session has a file: it gets one when something is said, and none in memory."""
    location = session.info.location
    return location is not None and await anyio.Path(location).exists()
