"""Interface between a conversation and its commands."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import anyio

from agent_core.assembly import SessionRequest
from agent_core.kernel.values import Value
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


class ChatContext(Protocol):
    """A conversation, as its commands see it."""

    @property
    def session(self) -> AgentSession:
        """The session that is talked in."""
        ...

    @property
    def request(self) -> SessionRequest:
        """How it was opened."""
        ...

    @property
    def columns(self) -> int:
        """How wide what is told may be."""
        ...

    def tell(self, text: str, style: str = DIM) -> None:
        """Show something."""
        ...

    async def choose(self, title: str, choices: Sequence[str]) -> str | int | None:
        """Ask the user to choose; return the index of a choice, other text that was typed, or None for neither."""
        ...

    async def ask_secret(self, title: str) -> str | None:
        """Ask for a text that is not shown and not kept in the history; None: the user cancelled."""
        ...

    def to_clipboard(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal's machine, if the terminal can do that."""
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
