"""Choices among stored sessions and their entries, and the export of one: for a session of this process and of the daemon."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly import SessionRequest
from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.errors import SessionNotFound, UsageError
from agent_core.resources.paths import app_paths
from agent_core.storage.port import SessionSummary
from agent_core.workspace.files.paths import relative_name
from tiller_server.cli.chat.context import ChatDialog
from tiller_server.cli.stored_sessions.session_files import ENDINGS, export_to, format_of
from tiller_server.cli.terminal.run_renderer import GREEN
from tiller_server.cli.terminal.text import SHORT_ID, moment, one_line

MOST_CHOICES: Final = 40
MOST_TRIED: Final = 1_000


async def choose_session(
    dialog: ChatDialog, request: SessionRequest, wanted: str, *, root: Path, current: str
) -> SessionId | None:
    """Return the session that a text names, or that the user chooses from a list; None: they chose none.

    A text that names no session searches, also one that is typed at the list.

    Raises:
        SessionNotFound: No session of the folder has the text as its id, or contains it.
    """
    paths = request.paths or app_paths(request.env)
    async with open_library(paths, clock=request.clock) as library:
        text = wanted
        while True:
            if text and (found := await _of_id(library, text)) is not None:
                return found
            others = await _others(library, text, root=root, current=current)
            chosen = await dialog.choose(
                "Continue which session, or search for which text?",
                [_session_row(one) for one in others],
            )
            if not isinstance(chosen, str):
                return None if chosen is None else others[chosen].session
            text = chosen


async def _of_id(library: SessionLibrary, text: str) -> SessionId | None:
    try:
        return (await library.find(text)).session
    except SessionNotFound:
        return None


async def _others(
    library: SessionLibrary, query: str, *, root: Path, current: str
) -> Sequence[SessionSummary]:
    page = await library.list(str(root), query=query or None, limit=MOST_CHOICES)
    others = [one for one in page.sessions if one.session != current]
    if query and not others:
        message = f"no session of this folder has this id, or contains {query!r}"
        raise SessionNotFound(message)
    return others


def _session_row(one: SessionSummary) -> str:
    count = f"{one.messages} messages"
    return f"{moment(one.modified_ms)}  {count:>13}  {one_line(one.title or one.preview)}"


async def choose_prompt(
    dialog: ChatDialog, prompts: Sequence[tuple[EntryId, str]]
) -> EntryId | None:
    """Return the entry of a prompt that the user chooses to fork before; None: they chose none.

    Args:
        dialog: Where they are asked.
        prompts: Entries and texts of the branch, the newest last.
    """
    offered = prompts[-MOST_CHOICES:]
    rows = [one_line(text) for _, text in offered]
    chosen = await dialog.choose("Fork before which message?", rows, marked=max(0, len(rows) - 1))
    return offered[chosen][0] if isinstance(chosen, int) else None


async def export_session(
    dialog: ChatDialog, request: SessionRequest, named: str, *, root: Path, session: str
) -> None:
    """Write a session into a new file of the workspace; without a name, into one that is named after the session.

    Raises:
        UsageError: The name says no format, or something of that name is there.
        StorageError: The session cannot be read, or the file cannot be written.
    """
    path = await anyio.Path(root / named).expanduser() if named else await _unused(root, session)
    how = format_of(Path(path))
    if how is None:
        message = f"unknown format {named!r}: use a name that ends in {', '.join(ENDINGS)}"
        raise UsageError(message)
    paths = request.paths or app_paths(request.env)
    async with open_library(paths, clock=request.clock) as library:
        await export_to(library, SessionId(session), how, Path(path), env=request.env)
    dialog.tell(f"Exported to {relative_name(Path(path), root)}", GREEN)


async def _unused(root: Path, session: str) -> anyio.Path:
    """Return an unused file name. `export_to` fails, and overwrites nothing, when the file appears in the meantime."""
    stem = f"tiller-{session[-SHORT_ID:]}"
    path = anyio.Path(root / f"{stem}.md")
    for number in range(2, MOST_TRIED):
        if not await path.exists():
            break
        path = anyio.Path(root / f"{stem}-{number}.md")
    return path
