"""Hooks for the user's shell commands: a hook allows a command, refuses it, or runs it itself."""

import logging
from collections.abc import Callable

from agent_core.hooks import (
    CommandBlocked,
    CommandCarried,
    CommandDone,
    CommandTyped,
    GoOn,
)
from agent_core.kernel.errors import CommandRefused
from agent_core.session.context import SessionContext

log = logging.getLogger(__name__)


async def ask_command_hooks(
    parts: SessionContext, command: str, *, exclude_from_context: bool
) -> CommandDone | CommandCarried | None:
    """Ask hooks about a command; None: it is run as usual.

    Raises:
        CommandRefused: One of them does not want it, or could not be asked.
    """
    typed = CommandTyped(
        command=command,
        exclude_from_context=exclude_from_context,
        cwd=str(parts.place.workspace.root),
    )
    match await parts.hooks.ask(typed):
        case CommandBlocked(reason=reason):
            raise CommandRefused(reason or "an extension does not want this command to run")
        case (CommandDone() | CommandCarried()) as carried:
            return carried
        case GoOn():
            return None


async def run_hooked_command(
    carried: CommandDone | CommandCarried, command: str, *, show: Callable[[str], None]
) -> CommandDone:
    """Return what became of a command that a hook takes on itself; a function that fails is an end like others."""
    if isinstance(carried, CommandDone):
        if carried.output:
            show(carried.output)
        return carried
    try:
        done = await carried.run(command, show)
    except Exception as error:
        log.warning("a hook could not run a command of the user", exc_info=error)
        return CommandDone(output=f"the extension could not run it: {error}", exit_code=None)
    if not isinstance(done, CommandDone):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign code
        return CommandDone(output=f"the extension gave {done!r:.200} as its end", exit_code=None)
    return done
