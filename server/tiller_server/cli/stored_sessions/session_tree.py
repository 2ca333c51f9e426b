"""Prints the branches of a session."""

import argparse
import sys
from typing import Final

from agent_core.assembly.library import SessionLibrary
from agent_core.kernel import JsonValue, rfc3339
from agent_core.kernel.json import encode
from agent_core.transcript import Transcript
from tiller_server.cli.stored_sessions.transcript_view import tell_recovery
from tiller_server.cli.stored_sessions.tree_layout import Drawing, draw, rows
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import BOLD, CYAN, DIM, cells_of_row, one_line, styled

ID_CELLS: Final = 8


async def tree(library: SessionLibrary, options: argparse.Namespace, *, colour: bool) -> int:
    """Draw the branches of a session, with labels and the place where it goes on."""
    found = await library.find(options.session)
    stored = await library.read(found.session)
    drawing = draw(stored.entries)
    if options.json:
        return _write_json(drawing)
    title = Transcript(stored.entries).title or found.session
    _ = sys.stdout.write(styled(one_line(title), BOLD, colour=colour) + "\n")
    for row in rows(drawing, room=cells_of_row() - ID_CELLS - 1):
        name = styled(row.node.entry[:ID_CELLS], DIM, colour=colour)
        shown = f"{row.lead}{name} {row.text}{styled(row.label, CYAN, colour=colour)}"
        _ = sys.stdout.write(f"{shown}{styled(row.mark, BOLD, colour=colour)}\n")
    tell_recovery(stored)
    return 0


def _write_json(drawing: Drawing) -> int:
    found: list[JsonValue] = [
        {
            "entry": node.entry,
            "parent": node.parent,
            "at": rfc3339(node.at_ms),
            "text": node.text,
            "label": drawing.labels.get(node.entry),
        }
        for node in drawing.nodes.values()
    ]
    speak_json()
    _ = sys.stdout.write(encode({"leaf": drawing.here, "nodes": found}).decode() + "\n")
    return 0
