"""Copies sessions out and in, and removes them."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_core.assembly.library import ExportFormat, SessionLibrary
from agent_core.kernel import SessionId
from agent_core.kernel.errors import StorageUnavailable, UsageError
from agent_core.storage import SessionSummary
from tiller_server.cli.exit_codes import DONE, FAILED
from tiller_server.cli.terminal.text import moment, one_line

PRIVATE: Final = 0o600
"""File mode of exports: only the user can read a conversation, until the user changes the mode."""
ENDINGS: Final[Mapping[str, ExportFormat]] = {
    ".md": "md",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "jsonl",
}


async def export(
    library: SessionLibrary, options: argparse.Namespace, env: Mapping[str, str]
) -> int:
    """Write a session as a document."""
    found = await library.find(options.session)
    if options.output is None or options.output == "-":
        document = await library.export(found.session, options.format or "md", env=env)
        _ = sys.stdout.buffer.write(document)
        _ = sys.stdout.buffer.flush()
        return DONE
    path = Path(options.output)
    how = options.format or format_of(path) or "md"
    await export_to(library, found.session, how, path, env=env)
    _ = sys.stdout.write(f"{found.session} is in {path}\n")
    return DONE


def format_of(path: Path) -> ExportFormat | None:
    """Return the format that the ending of a name says; None: it says none."""
    return ENDINGS.get(path.suffix.lower())


async def export_to(
    library: SessionLibrary,
    session: SessionId,
    how: ExportFormat,
    path: Path,
    *,
    env: Mapping[str, str],
) -> None:
    """Write a session into a new file.

    Raises:
        UsageError: Something of that name is there.
        StorageError: The session cannot be read, or the file cannot be written.
    """
    document = await library.export(session, how, env=env)
    await to_thread.run_sync(write_new, path, document)


async def take(library: SessionLibrary, options: argparse.Namespace, cwd: str) -> int:
    """Copy a session file into a folder's sessions."""
    source = await anyio.Path(options.file).resolve()
    taken = await library.import_(Path(source), cwd)
    _ = sys.stdout.write(f"{taken.session} holds {taken.entries} entries of {options.file}\n")
    if taken.skipped_lines:
        lines = ", ".join(map(str, taken.skipped_lines))
        _ = sys.stderr.write(f"these lines of it are damaged and were left out: {lines}\n")
    _ = sys.stdout.write(f'go on with it: tiller run --session {taken.session} "…"\n')
    return DONE


async def remove(library: SessionLibrary, options: argparse.Namespace) -> int:
    """Remove sessions, after all of them were found and the user agreed."""
    chosen = {one.session: one for one in [await library.find(name) for name in options.sessions]}
    if not options.yes and not await to_thread.run_sync(_agrees, tuple(chosen.values())):
        _ = sys.stderr.write("nothing was removed\n")
        return FAILED
    for session in chosen:
        await library.delete(session)
        _ = sys.stdout.write(f"{session} was removed\n")
    return DONE


def _agrees(sessions: tuple[SessionSummary, ...]) -> bool:
    if not sys.stdin.isatty():
        message = "removing asks first, and there is no terminal to answer on: add --yes"
        raise UsageError(message)
    for one in sessions:
        title = one_line(one.title or one.preview)
        line = f"{one.session}  {moment(one.modified_ms)}  {one.messages} messages  {title}\n"
        _ = sys.stderr.write(line)
    _ = sys.stderr.write("Remove for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def write_new(path: Path, document: bytes) -> None:
    """Write a new file that only the user can read. Blocking.

    Raises:
        UsageError: Something of that name is there.
        StorageUnavailable: It cannot be written.
    """
    try:
        fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE
        )
        with os.fdopen(fd, "wb") as file:
            _ = file.write(document)
    except FileExistsError as error:
        message = f"{str(path)!r} is there already: name a new file, or remove it first"
        raise UsageError(message) from error
    except OSError as error:
        message = f"{str(path)!r} could not be written: {error.strerror or error}"
        raise StorageUnavailable(message) from error
