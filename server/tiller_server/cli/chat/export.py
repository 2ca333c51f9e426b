"""`/export`: writes the session that is talked in as a document."""

from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly.library.session_library import open_library
from agent_core.kernel.errors import UsageError
from agent_core.resources.paths import app_paths
from tiller_server.cli.chat.context import ChatContext, is_kept
from tiller_server.cli.stored_sessions.session_files import ENDINGS, export_to, format_of
from tiller_server.cli.terminal.run_renderer import GREEN
from tiller_server.cli.terminal.text import SHORT_ID

MOST_TRIED: Final = 1_000


async def export(chat: ChatContext, named: str) -> None:
    """Write it into a new file of the workspace; without a name, into one that is named after the session.

    Raises:
        UsageError: Nothing is kept of the session, the name says no format, or something of that name is there.
        StorageError: The session cannot be read, or the file cannot be written.
    """
    session = chat.session
    if not await is_kept(session):
        message = (
            "there is nothing to export: nothing was said yet, or the session is in memory only"
        )
        raise UsageError(message)
    root = Path(session.info.root)
    path = await anyio.Path(root / named).expanduser() if named else await _unused(root, session.id)
    how = format_of(Path(path))
    if how is None:
        message = f"{named!r} does not say in which format; end it with one of {', '.join(ENDINGS)}"
        raise UsageError(message)
    paths = chat.request.paths or app_paths(chat.request.env)
    async with open_library(paths, clock=chat.request.clock) as library:
        await export_to(library, session.id, how, Path(path))
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    chat.tell(f"the session is in {shown}", GREEN)


async def _unused(root: Path, session: str) -> anyio.Path:
    """Return an unused file name. `export_to` fails, and overwrites nothing, when the file appears in the meantime."""
    stem = f"tiller-{session[-SHORT_ID:]}"
    path = anyio.Path(root / f"{stem}.md")
    for number in range(2, MOST_TRIED):
        if not await path.exists():
            break
        path = anyio.Path(root / f"{stem}-{number}.md")
    return path
