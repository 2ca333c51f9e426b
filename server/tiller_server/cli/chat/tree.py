"""`/tree`: shows the branches of the session that is talked in, and goes on from another place of it."""

from collections.abc import Sequence
from typing import Final

from agent_core.assembly.library import open_library
from agent_core.kernel.errors import UsageError
from agent_core.resources.paths import app_paths
from agent_core.transcript import AnyEntry
from tiller_server.cli.chat.context import ChatContext, ChatDialog, Refill, is_kept
from tiller_server.cli.stored_sessions.tree_layout import Node, TreeRow, draw, rows
from tiller_server.cli.terminal.run_renderer import GREEN, YELLOW
from tiller_server.cli.terminal.text import clipped

MOST_ROWS: Final = 60
NUMBER_CELLS: Final = 6
ENTRY_CELLS: Final = 60


async def go_to(chat: ChatContext, query: str) -> Refill | None:
    """Ask the user for an entry of the session tree and continue from it; no entry is lost.

    If the entry is a prompt of the user, its text returns to the input line and the conversation continues before it;
    after any other entry, it continues behind that entry.

    Args:
        chat: The conversation.
        query: Text that the rows must contain; empty: all are shown.

    Raises:
        UsageError: The answer is not one of the entries shown.
        TillerError: The session cannot be read, or does not move.
    """
    node = await choose_entry(chat, await _entries(chat), query)
    if node is None:
        return None
    moved = await chat.session.tree.navigate(node.last)
    return report_move(chat, node, is_moved=not moved.cancelled, text=moved.editor_text)


async def choose_entry(dialog: ChatDialog, entries: Sequence[AnyEntry], query: str) -> Node | None:
    """Ask the user for an entry of the tree; None: none was chosen, or the session continues from there already.

    Raises:
        UsageError: The answer is not one of the entries shown.
    """
    drawing = draw(entries)
    every = tuple(rows(drawing, room=max(dialog.columns - NUMBER_CELLS, 1)))
    found = [row for row in every if query.casefold() in f"{row.node.text}{row.label}".casefold()]
    if not found:
        dialog.tell(f"No entry contains {query!r}." if every else "No entries yet.", YELLOW)
        return None
    shown = _around(found, drawing.here)
    if len(shown) < len(found):
        dialog.tell(
            f"{len(shown)} of {len(found)} entries. /tree TEXT shows those that contain it."
        )
    lines = [f"{row.lead}{' ' if row.lead else ''}{row.text}{row.label}{row.mark}" for row in shown]
    here = next((at for at, row in enumerate(shown) if row.node.entry == drawing.here), 0)
    chosen = await dialog.choose("Continue from which entry?", lines, marked=here)
    if chosen is None:
        return None
    if isinstance(chosen, str):
        message = (
            f"unknown entry {chosen!r}: type /tree again, then a number from 1 to {len(shown)}"
        )
        raise UsageError(message)
    node = shown[chosen].node
    if node.entry == drawing.here:
        dialog.tell("The session continues from there already.")
        return None
    return node


def report_move(
    dialog: ChatDialog, node: Node, *, is_moved: bool, text: str | None
) -> Refill | None:
    """Report where the session continues; return the text of a prompt of the user for the input line."""
    if not is_moved:
        dialog.tell("Not moved: an extension refused it.", YELLOW)
        return None
    entry = clipped(node.text.removeprefix("> "), ENTRY_CELLS)
    if text is None:
        dialog.tell(f"Continuing after: {entry}", GREEN)
        return None
    dialog.tell(f"Continuing before: {entry}", GREEN)
    return Refill(text) if node.is_yours else None


def _around(found: Sequence[TreeRow], here: str | None) -> Sequence[TreeRow]:
    """Return the rows that end soon behind where the session goes on; the last ones, when that is not among them."""
    at = next((place for place, row in enumerate(found) if row.node.entry == here), len(found))
    end = min(len(found), max(at + MOST_ROWS // 2, MOST_ROWS))
    return found[max(0, end - MOST_ROWS) : end]


async def _entries(chat: ChatContext) -> Sequence[AnyEntry]:
    """Return all entries of all branches, those of a kept session with all their words."""
    session = chat.session
    if not await is_kept(session):
        return session.tree.entries
    paths = chat.request.paths or app_paths(chat.request.env)
    async with open_library(paths, clock=chat.request.clock) as library:
        return (await library.read(session.id)).entries
