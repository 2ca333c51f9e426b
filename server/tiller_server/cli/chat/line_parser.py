"""Parser for a line of a conversation: a prompt, a command of the conversation, or a shell command. Pure."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from agent_core.kernel.values import Value
from agent_core.resources.slash_commands import SlashInvocation, slashed


class ChatPrompt(Value, frozen=True, kw_only=True):
    """Something to say."""

    text: str


class Shell(Value, frozen=True, kw_only=True):
    """A command of the user's own."""

    command: str
    exclude_from_context: bool
    """The model is not told of it."""


class UnknownChatCommand(Value, frozen=True, kw_only=True):
    """Begins as a command does, and is none."""

    name: str
    nearest: str | None


ChatLine = ChatPrompt | Shell | SlashInvocation | UnknownChatCommand


def meaning(line: str, *, ours: Iterable[str], theirs: Iterable[str]) -> ChatLine | None:
    """Return what a line means; None: it is blank.

    A line that begins with a blank is words, whatever follows.

    Args:
        line: As it was typed.
        ours: The commands of the conversation itself.
        theirs: Skills, templates and commands of extensions: words that the session looks after.
    """
    text = line.strip()
    if not text:
        return None
    if line[0].isspace():
        return ChatPrompt(text=text)
    if text.startswith("!"):
        return _shell(text)
    said = slashed(text)
    # A path is no command: `/etc/hosts is wrong`.
    if said is None or "/" in said.name:
        return ChatPrompt(text=text)
    return _command(said, text, ours=tuple(ours), theirs=tuple(theirs))


def _command(
    said: SlashInvocation, text: str, *, ours: Sequence[str], theirs: Sequence[str]
) -> ChatLine:
    if said.name in ours:
        return said
    if said.name in theirs:
        return ChatPrompt(text=text)
    nearest = get_close_matches(said.name, (*ours, *theirs), n=1)
    return UnknownChatCommand(name=said.name, nearest=nearest[0] if nearest else None)


def _shell(text: str) -> ChatLine | None:
    command = text[2:] if text.startswith("!!") else text[1:]
    if not command.strip():
        return None
    return Shell(command=command.strip(), exclude_from_context=text.startswith("!!"))
