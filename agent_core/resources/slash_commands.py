"""Slash commands and their parsing."""

from collections.abc import Sequence
from typing import Literal, Protocol

from agent_core.kernel.values import Value

CommandKind = Literal["extension", "prompt", "skill", "builtin"]


class SlashCommand(Value, frozen=True, kw_only=True):
    """One of them, as people choose it from a list."""

    name: str
    """Without the slash."""
    description: str = ""
    source: CommandKind
    argument_hint: str = ""


class Completion(Value, frozen=True, kw_only=True):
    """One way to go on with the arguments of a command."""

    value: str
    label: str = ""
    description: str = ""


class SlashInvocation(Value, frozen=True, kw_only=True):
    """Words that begin with a slash, taken apart."""

    name: str
    arguments: str
    """As they were written, without the blanks around them."""


class CommandSource(Protocol):
    """Brings commands that run code; in a session those of extensions."""

    def commands(self) -> Sequence[SlashCommand]:
        """List them as they are now; of two of one name the first is meant."""
        ...

    async def complete(self, name: str, prefix: str) -> Sequence[Completion]:
        """Return how the arguments of a command may go on; nothing when it has no say."""
        ...

    async def run(self, name: str, arguments: str) -> None:
        """Run one of them. It runs beside what goes on in the session, and is cancelled when that closes."""
        ...


def slashed(text: str) -> SlashInvocation | None:
    """Parse a text that begins with a slash and a name; None when it does not."""
    if not text.startswith("/"):
        return None
    name, *rest = text[1:].split(maxsplit=1)[:2] if text[1:2].strip() else ("",)
    if not name:
        return None
    return SlashInvocation(name=name, arguments=rest[0].strip() if rest else "")
