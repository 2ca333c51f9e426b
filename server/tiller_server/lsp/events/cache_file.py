"""The replay cache of one session on disk: its durable events as they went out. Everything here blocks.

The first line says what it is; then come events, and marks. A mark names the number up to which events may have been
sent (deltas are not written, but their numbers are used) and the newest entry of the session file at that time: when the
file has gone on without the cache, the cache is of no use any more.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.kernel import JsonValue
from agent_core.kernel.json import decode_sound, encode
from agent_core.kernel.redaction.redactor import HeldOnly, Redactor
from agent_core.kernel.values import Value

KEPT_BYTES: Final = 8 * 1024 * 1024
KEPT_EVENTS: Final = 20_000
"""A cache that has more of either loses its older half."""
FILE_MODE: Final = 0o600
FORMAT: Final = 1

_SEQ: Final = re.compile(rb'\{"seq":(\d+)[,}]')
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)

_log = logging.getLogger(__name__)

NumberedEvent = tuple[int, bytes]
"""An event: its number and its JSON."""


class CacheMark(Value, frozen=True, kw_only=True):
    """How far the numbers may have been used, and what the session file ended with."""

    to: int
    entry: str | None


class CacheContents(Struct, kw_only=True):
    """Contents of a cache that was read completely."""

    epoch: str
    after: int
    """Events up to this one are not in it (any more)."""
    mark: CacheMark
    newest: int
    size: int
    """How much of the file is good."""
    events: int
    said: dict[str, Mapping[str, JsonValue]] = msgspec.field(default_factory=dict)
    """The newest event of each type that says how the session is."""
    open: dict[str, JsonValue] = msgspec.field(default_factory=dict)
    asked: dict[str, JsonValue] = msgspec.field(default_factory=dict)
    """As `open`, for questions that are not about a permission."""
    """Questions to people that had no answer."""


def find(path: Path, session: str) -> CacheContents | None:
    """Read a cache; None when there is none, when it is another session's, or when it is damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("the replay cache %r cannot be read: %s", str(path), error)
        return None
    # What follows the last newline was cut off while it was written: nobody was sent it.
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    try:
        return _read(lines, session, size=content.rfind(b"\n") + 1)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        _log.warning("the replay cache %r is damaged and begins anew: %s", str(path), error)
        return None


class ReplayFile:
    """A cache that is written."""

    def __init__(
        self, path: Path, *, session: str, epoch: str, after: int, redactor: Redactor
    ) -> None:
        self.path = path
        self._redactor = redactor
        self._session = session
        self._epoch = epoch
        self._after = after
        self._fd: int | None = None
        self._bytes = 0
        self._events = 0

    @classmethod
    def going_on(
        cls, path: Path, *, session: str, found: CacheContents, redactor: Redactor
    ) -> "ReplayFile":
        """Go on with a cache that was found good; a line that was cut off is dropped.

        Raises:
            OSError: It cannot be written.
        """
        file = cls(path, session=session, epoch=found.epoch, after=found.after, redactor=redactor)
        file._fd = os.open(path, _FLAGS, FILE_MODE)
        os.ftruncate(file._fd, found.size)
        file._bytes, file._events = found.size, found.events
        return file

    @property
    def is_there(self) -> bool:
        """Whether the cache is on disk."""
        return self._fd is not None

    def begin_after(self, seq: int) -> None:
        """Leave out what came before: it was never written, and is gone."""
        self._after = seq

    def append(self, lines: Sequence[NumberedEvent], mark: CacheMark | None) -> None:
        """Write events and then a mark, in one write; the first time makes the file.

        Raises:
            OSError: Perhaps some of them are in the file, in order.
        """
        head = b""
        if self._fd is None:
            self.path.unlink(missing_ok=True)
            self._fd = os.open(self.path, _FLAGS | os.O_EXCL, FILE_MODE)
            head = self._header()
        content = b"".join([head, *(b"%b\n" % self._clean(body) for _, body in lines), _line(mark)])
        _write_all(self._fd, content)
        self._bytes += len(content)
        self._events += len(lines)
        if self._bytes > KEPT_BYTES or self._events > KEPT_EVENTS:
            self._prune(mark)

    def read(
        self, after: int, *, to: int, most_bytes: int
    ) -> tuple[list[NumberedEvent], int] | None:
        """Return events in `(after, to]`, and how far they reach; None when older ones are gone.

        Raises:
            OSError: It cannot be read.
        """
        if after < self._after:
            return None
        found: list[NumberedEvent] = []
        size = 0
        for seq, body in _events(self.path.read_bytes().splitlines()):
            if seq <= after:
                continue
            if seq > to:
                break
            if found and size > most_bytes:
                return found, found[-1][0]
            found.append((seq, body))
            size += len(body)
        return found, to

    def discard(self) -> None:
        """Delete the cache, so that no process continues from it.

        Raises:
            OSError: The file could not be deleted and still exists.
        """
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _clean(self, body: bytes) -> bytes:
        """Return an event without the values that the program holds: paths are redacted nowhere else before the wire."""
        if not self._redactor.holds_any:
            return body
        text = body.decode()
        if self._redactor.held(text) == text:
            return body
        return encode(HeldOnly(self._redactor).json(decode_sound(body)))

    def _header(self) -> bytes:
        head: dict[str, JsonValue] = {
            "tiller": "events",
            "v": FORMAT,
            "session": self._session,
            "epoch": self._epoch,
            "after": self._after,
        }
        return encode(head) + b"\n"

    def _prune(self, mark: CacheMark | None) -> None:
        """Keep the newer half, in a file that takes the old one's place at once."""
        lines = self.path.read_bytes().splitlines()
        marks = [one for one in lines if one.startswith(b'{"mark"')]
        events = list(_events(lines))
        size = 0
        keep = len(events)
        while keep > 0 and len(events) - keep < KEPT_EVENTS // 2 and size < KEPT_BYTES // 2:
            keep -= 1
            size += len(events[keep][1]) + 1
        self._after = events[keep - 1][0] if keep else self._after
        last = _line(mark) or (marks[-1] + b"\n" if marks else b"")
        content = b"".join([self._header(), *(b"%b\n" % body for _, body in events[keep:]), last])
        beside = self.path.with_name(self.path.name + ".new")
        beside.unlink(missing_ok=True)
        fd = os.open(beside, _FLAGS | os.O_EXCL, FILE_MODE)
        try:
            _write_all(fd, content)
            beside.replace(self.path)
        except BaseException:
            os.close(fd)
            beside.unlink(missing_ok=True)
            raise
        self.close()
        self._fd, self._bytes, self._events = fd, len(content), len(events) - keep


STATES: Final = ("session.state", "session.config", "queue.changed")
_REQUESTED: Final = "permission.requested"
_RESOLVED: Final = "permission.resolved"
_ASKED: Final = "question.requested"
_ANSWERED: Final = "question.resolved"


def _read(lines: Sequence[bytes], session: str, *, size: int) -> CacheContents:
    head = _object(lines[0])
    if head.get("tiller") != "events" or head.get("v") != FORMAT or head["session"] != session:
        raise ValueError("it is another session's, or of another version")
    epoch, after = head["epoch"], head["after"]
    if not isinstance(epoch, str) or not isinstance(after, int):
        raise TypeError("its first line is no header")
    found = CacheContents(
        epoch=epoch,
        after=after,
        mark=CacheMark(to=after, entry=None),
        newest=after,
        size=size,
        events=0,
    )
    for line in lines[1:]:
        _take(found, _object(line))
    return found


def _take(found: CacheContents, one: Mapping[str, JsonValue]) -> None:
    mark = one.get("mark")
    if isinstance(mark, Mapping):
        to, entry = mark["to"], mark["entry"]
        if not isinstance(to, int) or not (entry is None or isinstance(entry, str)):
            raise TypeError("a mark holds something else")
        found.mark = CacheMark(to=to, entry=entry)
        return
    seq = one["seq"]
    if not isinstance(seq, int) or seq <= found.newest:
        message = f"event {seq!r} follows event {found.newest}"
        raise ValueError(message)
    found.newest = seq
    found.events += 1
    kind = one["type"]
    if kind in STATES:
        found.said[str(kind)] = dict(one)
    elif kind in {_REQUESTED, _ASKED} and isinstance(request := one.get("request"), Mapping):
        waiting = found.open if kind == _REQUESTED else found.asked
        waiting[str(request.get("request"))] = one.get("run")
    elif kind in {_RESOLVED, _ANSWERED}:
        waiting = found.open if kind == _RESOLVED else found.asked
        _ = waiting.pop(str(one.get("request")), None)


def _object(line: bytes) -> Mapping[str, JsonValue]:
    value = decode_sound(line)
    if not isinstance(value, Mapping):
        raise TypeError("a line is no object")
    return value


def _events(lines: Iterable[bytes]) -> Iterator[NumberedEvent]:
    for line in lines:
        match = _SEQ.match(line)
        if match is not None:
            yield int(match[1]), line


def _line(mark: CacheMark | None) -> bytes:
    if mark is None:
        return b""
    return encode({"mark": {"to": mark.to, "entry": mark.entry}}) + b"\n"


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
