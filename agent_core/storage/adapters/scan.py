"""Looks through stored sessions without opening them for writing. Everything here blocks."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent_core.kernel import JsonObject, SessionId, json
from agent_core.kernel.errors import SessionNotFound
from agent_core.storage.adapters.diagnosis import HEADER_BYTES, why_not_found
from agent_core.storage.adapters.paths import SUFFIX, session_files, slug
from agent_core.storage.adapters.recovery import parse_line
from agent_core.storage.port import SessionSummary
from agent_core.storage.summary import SessionSummaryBuilder, written_ms
from agent_core.transcript.codec import HEADER_TYPE, decode_header
from agent_core.transcript.entries import Header

TAIL_BYTES = 1 << 16
"""How much of a file's end is read first to find its last entry; doubled until one is in it."""


def find(folder: Path, session: SessionId) -> Path:
    """Find the file of a session: by its name, else by the headers, so that a file placed by hand is found.

    Raises:
        SessionNotFound: There is no such file, or there are several and not exactly one is in its own place.
        SessionDamaged: The file with its name is not a session.
        StorageUnavailable: Its file, or a folder that may hold it, cannot be read.
    """
    ending = f"_{session}{SUFFIX}"
    files = list(session_files(folder))
    named = [path for path in files if path.name.endswith(ending)]
    found = _with_id(named, session) or _with_id(files, session)
    if not found:
        raise why_not_found(folder, session)
    if len(found) > 1:
        found = [(path, header) for path, header in found if _is_at_home(path, header)] or found
    if len(found) > 1:
        places = ", ".join(repr(str(path)) for path, _ in found)
        message = f"the session {session!r} is in several files: keep one of {places}"
        raise SessionNotFound(message)
    return found[0][0]


def latest(folder: Path, cwd: str) -> SessionId | None:
    """Return the session of a workspace with the newest last entry."""
    found = [
        (_last_written(path, header), path.name, header.id)
        for path, header in _headers(folder)
        if header.cwd == json.scrub(cwd)
    ]
    return max(found)[2] if found else None


def summaries(folder: Path, cwd: str | None) -> tuple[SessionSummary, ...]:
    """Return what can be read of every session, newest first."""
    found = [
        summary
        for path, header in _headers(folder)
        if cwd is None or header.cwd == json.scrub(cwd)
        for summary in _summary(path, header)
    ]
    return tuple(sorted(found, key=lambda one: one.modified_ms, reverse=True))


def _with_id(files: list[Path], session: SessionId) -> list[tuple[Path, Header]]:
    headers = ((path, read_header(path)) for path in files)
    return [(path, header) for path, header in headers if header and header.id == session]


def _is_at_home(path: Path, header: Header) -> bool:
    return path.parent.name == slug(header.cwd) and path.name.endswith(f"_{header.id}{SUFFIX}")


def _headers(folder: Path) -> Iterator[tuple[Path, Header]]:
    for path in session_files(folder):
        header = read_header(path)
        if header is not None:
            yield path, header


def read_header(path: Path) -> Header | None:
    """Read the header of a session file; None when the file has none or cannot be read."""
    try:
        with path.open("rb") as file:
            left = HEADER_BYTES
            while left > 0 and (line := file.readline(left)):
                left -= len(line)
                raw = parse_line(line)
                if raw is not None:
                    return decode_header(raw)
    except (OSError, ValueError):
        return None
    return None


def _summary(path: Path, header: Header) -> Iterator[SessionSummary]:
    tally = SessionSummaryBuilder(header)
    try:
        with path.open("rb") as file:
            for line in file:
                raw = parse_line(line)
                if raw is not None and raw.get("type") != HEADER_TYPE:
                    tally.take(raw)
    except OSError:
        return
    yield tally.summary(path)


def _last_written(path: Path, header: Header) -> int:
    return written_ms(_last_entry(path), otherwise=header.at_ms)


def _last_entry(path: Path) -> JsonObject | None:
    size = TAIL_BYTES
    try:
        with path.open("rb") as file:
            whole = file.seek(0, os.SEEK_END)
            while True:
                start = max(0, whole - size)
                file.seek(start)
                lines = file.read(size).split(b"\n")
                # The first piece may be the end of a line that began before.
                for line in reversed(lines if start == 0 else lines[1:]):
                    raw = parse_line(line)
                    if raw is not None:
                        return raw
                if start == 0:
                    return None
                size *= 2
    except OSError:
        return None
