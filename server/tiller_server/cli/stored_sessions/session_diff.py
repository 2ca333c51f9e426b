"""Shows what a session changed, to be read or to be applied by git."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.assembly.library import SessionLibrary
from tiller_server.cli.exit_codes import DONE
from tiller_server.cli.stored_sessions.session_files import write_new
from tiller_server.cli.terminal.text import BOLD, CYAN, DIM, GREEN, RED, safe, styled

STYLES: Final[Mapping[str, str]] = {"+": GREEN, "-": RED, "@": CYAN, "d": BOLD, "N": DIM}
HEADS: Final = ("+++", "---")


async def diff(library: SessionLibrary, options: argparse.Namespace, *, colour: bool) -> int:
    """Print what the agent changed and was not rejected."""
    found = await library.find(options.session)
    patch = await library.patch(found.session)
    if options.output is not None and options.output != "-":
        await to_thread.run_sync(write_new, Path(options.output), _bytes(patch))
        _ = sys.stdout.write(f"the changes of {found.session} are in {options.output}\n")
        return DONE
    if options.patch:
        write_patch(patch)
        return DONE
    if not patch:
        _ = sys.stderr.write(f"{found.session} changed no files\n")
    show_patch(patch, colour=colour)
    return DONE


def show_patch(patch: str, *, colour: bool) -> None:
    """Print a patch to be read, with bytes that are not UTF-8 replaced."""
    for row in patch.split("\n")[:-1]:
        style = BOLD if row.startswith(HEADS) else STYLES.get(row[:1], "")
        shown = safe(row.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        _ = sys.stdout.write(styled(shown, style, colour=colour and bool(style)) + "\n")


def write_patch(patch: str) -> None:
    """Write a patch byte for byte to standard output."""
    sys.stdout.flush()
    _ = sys.stdout.buffer.write(_bytes(patch))
    _ = sys.stdout.buffer.flush()


def _bytes(patch: str) -> bytes:
    return patch.encode("utf-8", "surrogateescape")
