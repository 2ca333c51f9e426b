"""The slash command `/remember` of a session."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel.errors import TillerError, UsageError
from agent_core.memory.access import FolderMemory
from agent_core.memory.values import USER, MemoryDraft
from agent_core.resources.offers import Completion, SlashCommand

NAME: Final = "remember"
FOR_USER: Final = "--user"
WITHOUT_TEXT: Final = (
    f"/{NAME} takes a text, such as /{NAME} Tests need Docker; "
    f"{FOR_USER} before it is for all your projects"
)


class RememberCommand:
    """Stores a text of the user. The session runs it for prompts of a person only."""

    def __init__(self, memory: FolderMemory) -> None:
        self._memory = memory

    def commands(self) -> Sequence[SlashCommand]:
        """Return the one command."""
        command = SlashCommand(
            name=NAME,
            description="keep a text for later sessions",
            source="builtin",
            argument_hint=f"[{FOR_USER}] TEXT",
        )
        return (command,)

    async def complete(self, name: str, prefix: str) -> Sequence[Completion]:
        """Return nothing: a text has no completions."""
        _ = name, prefix
        return ()

    async def run(self, name: str, arguments: str) -> str:
        """Store the text; return a notice for the user, also when it cannot be stored."""
        _ = name
        try:
            return await remember(self._memory, arguments, session=None)
        except TillerError as error:
            return str(error)


async def remember(memory: FolderMemory, arguments: str, *, session: str | None) -> str:
    """Store a text of the user; return a notice for them.

    Args:
        memory: The memory of the workspace.
        arguments: The text, behind `--user` if it is for all projects.
        session: The session in which it was written; None: it is not known.

    Raises:
        UsageError: Memory is off, there is no text, or the text cannot be stored.
        ConfigError: A memory file cannot be read or written.
    """
    first, _, rest = arguments.strip().partition(" ")
    scope = USER if first == FOR_USER else memory.project.scope
    text = (rest if scope == USER else arguments).strip()
    if not text:
        raise UsageError(WITHOUT_TEXT)
    entry = await memory.remember(MemoryDraft(text=text, session=session), scope)
    whose = "all your projects" if scope == USER else "this project"
    return f"Remembered for {whose} ({entry.id}): {entry.text}"
