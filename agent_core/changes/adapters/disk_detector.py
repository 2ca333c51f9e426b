"""Detection of file changes by commands on this machine: a scan before, a scan after, and cheap events between.

Content that git stores is read from git, and only when it is needed. Other content is copied before a command, once
for each version of a file. Between the scans, the file system watcher reports the folders with changes.
"""

import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio import Lock
from msgspec import Struct
from msgspec.structs import replace

from agent_core.changes.adapters.git_state import (
    RepositorySnapshot,
    TrackedFile,
    index_of,
    look_at_repository,
    lost_refs,
    objects_of,
    tracked_in,
)
from agent_core.changes.adapters.tree_scanner import (
    FileDifference,
    ScanLimitExceeded,
    Stat,
    TreeScanner,
)
from agent_core.changes.ports import DetectedChange, DetectedChanges
from agent_core.changes.values import MOST_BYTES, BlobStore, FileVersion, keep
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace import FileBytes, FileText, Processes
from agent_core.workspace.files.text import decode_text, sha256_of

MOST_EFFECTS: Final = 200
"""Files reported for one command; further changed files are only counted."""
MOST_LOST: Final = 20
"""Deleted refs, and deleted files and folders ignored by git, that are reported for one command."""
MOST_COPIED_FILES: Final = 2_000
MOST_COPIED_BYTES: Final = 67_108_864
COPYING_S: Final = 1.0
"""Time for copying before one command, in seconds. Files are copied most recently modified first; the remaining files
are not copied until they are touched again."""
FEW_FILES: Final = 100
TICK_S: Final = 0.012
"""The times of files go by the ticks of the system's clock; the longest are a hundredth of a second."""
TICK_NS: Final = int(TICK_S * 1e9)
COARSE_CLOCK: Final = 5
"""Linux: the time of the last tick, which files get. Python has no name for it."""

log = logging.getLogger(__name__)


class _RecordedContent(Value, frozen=True):
    """Last known content of a file."""

    stat: Stat
    held: FileVersion | TrackedFile


class _Git(Struct):
    """Parsed index of a repository."""

    stamp: tuple[int, int] = (0, 0)
    tracked: Mapping[bytes, TrackedFile] = msgspec.field(default_factory=dict[bytes, TrackedFile])


class _Blind(Value, frozen=True):
    """State in which the effects of a command cannot be detected."""

    why: str
    roots: tuple[Path, ...] | None = None
    """Roots that are not scanned again because they hold too many files."""


class DiskChangeDetector:
    """Looks at the roots of a workspace; see `ChangeDetector`."""

    def __init__(
        self,
        roots: Sequence[Path],
        contents: BlobStore,
        processes: Processes,
        *,
        env: Mapping[str, str],
    ) -> None:
        """Create a lookout for the roots of a workspace.

        Args:
            roots: Read again before each command.
            contents: Store of file contents.
            processes: Starts git, contained.
            env: Environment of git.
        """
        self._roots = roots
        self._contents = contents
        self._objects = partial(objects_of, processes=processes, env=env)
        self._is_closed = False
        self._tree = TreeScanner()
        self._recorded: dict[str, _RecordedContent] = {}
        self._open: set[str] = set()
        """Files of which it is not known what they hold."""
        self._git: dict[Path, _Git] = {}
        self._repositories: list[RepositorySnapshot] = []
        self._blind: _Blind | None = _Blind("nobody looked before the command")
        self._turn = Lock(fast_acquire=True)

    def close(self) -> None:
        """Release the file system watches: now, or when the scan in progress has ended."""
        self._is_closed = True
        self._tree.stop()
        if not self._turn.locked():
            self._tree.rest()

    async def prepare(self) -> None:
        """Look for the first time; see `ChangeDetector.prepare`."""
        async with self._looking():
            if not self._tree.is_started:
                await self._snapshot()

    async def snapshot(self) -> None:
        """Record what is there; see `ChangeDetector.before`."""
        async with self._looking():
            await self._snapshot()

    async def diff(self) -> DetectedChanges:
        """Return what is different; see `ChangeDetector.after`."""
        async with self._looking():
            return await self._diff()

    @asynccontextmanager
    async def _looking(self) -> AsyncGenerator[None]:
        async with self._turn:
            try:
                yield
            finally:
                if self._is_closed:
                    self._tree.rest()

    async def _snapshot(self) -> None:
        roots = tuple(self._roots)
        if self._blind is not None and self._blind.roots == roots:
            return
        try:
            if await run_in_thread(partial(self._note, roots)):
                # What was written just now could be written once more without its times showing it.
                await anyio.sleep(TICK_S)
                _ = await run_in_thread(partial(self._note, roots))
            await self._copy()
        except ScanLimitExceeded as error:
            self._blind = _Blind(str(error), roots)
            self._tree.rest()
        except OSError as error:
            log.warning("the workspace cannot be looked through: %s", error)
            why = f"the workspace cannot be looked through: {error.strerror or error}"
            self._blind = _Blind(why)
        else:
            self._blind = None

    async def _diff(self) -> DetectedChanges:
        if self._blind is not None:
            why = self._blind.why
            return DetectedChanges(incomplete=f"What the command did to files was not seen: {why}.")
        try:
            different, ignored, refs = await run_in_thread(self._different)
        except ScanLimitExceeded as error:
            return DetectedChanges(
                incomplete=f"What the command did to files was not seen: {error}."
            )
        if len(different) > MOST_EFFECTS:
            # What was made is no loss, what was there before may be one.
            different.sort(key=lambda one: one.before is None)
        shown, left = different[:MOST_EFFECTS], len(different) - MOST_EFFECTS
        held = await self._held(shown)
        moved = _moves([*shown, *(one for one in ignored if one.after is None)])
        lost = (*refs, *_lost(ignored, moved.values()))
        effects = [
            effect
            for one in shown
            if one not in moved.values()
            and (effect := await self._effect(one, held.get(one.path))) is not None
        ]
        effects = [_moved(one, moved.get(str(one.path))) for one in effects]
        lines = [
            f"{count} more {what} and are not listed."
            for count, what in (
                (left, "files were changed"),
                (len(lost) - MOST_LOST, "files or refs, of which no copy is kept, were deleted"),
            )
            if count > 0
        ]
        return DetectedChanges(
            files=tuple(effects), lost=lost[:MOST_LOST], incomplete=" ".join(lines) or None
        )

    # ------------------------------------------------------------------ before

    def _note(self, roots: Sequence[Path]) -> bool:
        """Bring what is known of the tree up to date; tells whether something was changed just now. Blocks."""
        self._repositories = [look_at_repository(root) for root in roots]
        if self._tree.start(roots):
            changed: Iterable[str] = [path for path, _ in self._tree.files()]
            self._recorded = {
                path: recorded
                for path, recorded in self._recorded.items()
                if self._tree.stat(path) == recorded.stat
            }
        else:
            changed = [one.path for one in self._tree.refresh()]
        self._open |= {
            path for path in changed if path not in self._recorded or self._is_other(path)
        }
        if self._open:
            for root in roots:
                self._ask_git(root)
        just_now_ns = _now_ns() - TICK_NS
        stats = (self._tree.stat(path) for path in self._open)
        return any(one is not None and one.ctime_ns > just_now_ns for one in stats)

    def _is_other(self, path: str) -> bool:
        return self._recorded[path].stat != self._tree.stat(path)

    def _ask_git(self, root: Path) -> None:
        """Settle those files that are just as git knows them. Blocks."""
        git = self._git.setdefault(root, _Git())
        try:
            found = (root / ".git" / "index").lstat()
        except OSError:
            return
        if git.tracked and len(self._open) < FEW_FILES:
            return  # copying them is cheaper than reading the index again
        if git.stamp != (found.st_mtime_ns, found.st_ino):
            git.stamp = (found.st_mtime_ns, found.st_ino)
            git.tracked = tracked_in(index_of(root) or b"", written_ns=found.st_mtime_ns)
        head = f"{root}/"
        for path in [one for one in self._open if one.startswith(head)]:
            there, tracked = self._tree.stat(path), git.tracked.get(os.fsencode(path[len(head) :]))
            if there is not None and tracked is not None and _is_clean(there, tracked):
                self._settle(path, _RecordedContent(there, tracked))

    async def _copy(self) -> None:
        """Keep what the other files hold, within bounds."""
        if not self._open:
            return
        until, left_bytes = time.monotonic() + COPYING_S, MOST_COPIED_BYTES
        for path, there in await run_in_thread(self._to_copy):
            if time.monotonic() > until or there.size > left_bytes:
                return
            left_bytes -= there.size
            found = await run_in_thread(partial(_read, path, there))
            if found is None:
                continue
            version = await keep(found, self._contents)
            if version.content is None:
                return  # there is no room for more
            self._settle(path, _RecordedContent(there, version))

    def _to_copy(self) -> list[tuple[str, Stat]]:
        """Return the files that nobody keeps and that are small enough, newest first. Blocks."""
        there = [(path, found) for path in self._open if (found := self._tree.stat(path))]
        for path in self._open:
            _ = self._recorded.pop(path, None)
        self._open.clear()
        small = [one for one in there if one[1].size <= MOST_BYTES]
        small.sort(key=lambda one: one[1].mtime_ns, reverse=True)
        return list(
            islice((one for one in small if not self._tree.ignores(one[0])), MOST_COPIED_FILES)
        )

    def _settle(self, path: str, recorded: _RecordedContent) -> None:
        self._recorded[path] = recorded
        self._open.discard(path)

    # ------------------------------------------------------------------ after

    def _different(
        self,
    ) -> tuple[list[FileDifference], list[FileDifference], list[DetectedChange]]:
        """Return what is different, apart from it what git ignores, and the lost refs. Blocks."""
        different, ignored = list[FileDifference](), list[FileDifference]()
        for one in sorted(self._tree.refresh()):
            if self._tree.ignores(one.path):
                ignored.append(one)
            elif not self._is_only_rights(one):
                different.append(one)
        return different, ignored, self._lost_refs()

    def _lost_refs(self) -> list[DetectedChange]:
        """Return what a command removed of the roots' repositories. Blocks."""
        return [
            DetectedChange(
                path=path, before=FileVersion(sha256=named, content=None, size=0), after=None
            )
            for before in self._repositories
            for path, named in lost_refs(before, look_at_repository(before.folder.parent))
            # The look at the tree says this of whole repositories.
            if path != before.folder
        ]

    def _is_only_rights(self, one: FileDifference) -> bool:
        """Return whether only the rights of a file are others; where it is known what it held, that is compared."""
        if one.before is None or one.after is None or one.path in self._recorded:
            return False
        return one.before[:3] == one.after[:3]

    async def _held(self, different: Sequence[FileDifference]) -> Mapping[str, FileVersion]:
        """Return what files held before, as far as that is known."""
        recorded = {
            one.path: recorded.held
            for one in different
            if (recorded := self._recorded.get(one.path)) is not None
            and recorded.stat == one.before
        }
        held = {path: one for path, one in recorded.items() if isinstance(one, FileVersion)}
        for root in self._git:
            tracked = {
                path: one
                for path, one in recorded.items()
                if isinstance(one, TrackedFile) and path.startswith(f"{root}/")
            }
            if not tracked:
                continue
            names = sorted({one.object for one in tracked.values()})
            objects = await self._objects(root, names, roots=tuple(self._roots))
            for path, one in tracked.items():
                data = objects.get(one.object)
                # Another size: git keeps another form of the file than the one in the work tree.
                if data is not None and len(data) == one.size:
                    found = await run_in_thread(partial(_content, path, data))
                    held[path] = await keep(found, self._contents)
        return held

    async def _effect(self, one: FileDifference, held: FileVersion | None) -> DetectedChange | None:
        """Return what became of a file; None: it holds what it held."""
        path = Path(one.path)
        before = None if one.before is None else (held or _unknown(one.before))
        if one.after is None:
            _ = self._recorded.pop(one.path, None)
            return None if before is None else DetectedChange(path=path, before=before, after=None)
        found = await run_in_thread(partial(_read, one.path, one.after))
        after = _unknown(one.after) if found is None else await keep(found, self._contents)
        _ = self._recorded.pop(one.path, None)
        if one.after.ctime_ns > _now_ns() - TICK_NS:
            self._open.add(one.path)  # as above
        elif found is not None and after.content is not None:
            self._settle(one.path, _RecordedContent(one.after, after))
        if before is not None and before.sha256 and before.sha256 == after.sha256:
            return None
        return DetectedChange(path=path, before=before, after=after)


def _moves(different: Sequence[FileDifference]) -> Mapping[str, FileDifference]:
    """Return the moved files by new path: deleted under another path, with equal size, modification time and inode."""
    gone = {one.before[:3]: one for one in different if one.before and one.after is None}
    come = [one for one in different if one.before is None and one.after]
    found: dict[str, FileDifference] = {}
    for one in come:
        old = None if one.after is None else gone.pop(one.after[:3], None)
        if old is not None:
            found[one.path] = old
    return found


def _lost(
    ignored: Sequence[FileDifference], moved: Iterable[FileDifference]
) -> tuple[DetectedChange, ...]:
    """Return what went away of what git ignores and has no other name now."""
    elsewhere = {*moved, *_moves(ignored).values()}
    return tuple(
        DetectedChange(path=Path(one.path), before=_unknown(one.before), after=None)
        for one in ignored
        if one.before is not None and one.after is None and one not in elsewhere
    )


def _moved(effect: DetectedChange, old: FileDifference | None) -> DetectedChange:
    if old is None or effect.after is None:
        return effect
    # Size, times and place on the disk are the same, so it holds what it held.
    return replace(effect, source=Path(old.path), before=effect.after)


def _is_clean(there: Stat, tracked: TrackedFile) -> bool:
    # Git keeps 32 bits of an inode, and sets a size of 0 where it is not sure.
    return (there.size, there.mtime_ns, there.inode & 0xFFFF_FFFF) == (
        tracked.size,
        tracked.mtime_ns,
        tracked.inode,
    )


def _now_ns() -> int:
    """Return the time as files get it."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(COARSE_CLOCK)
    return time.time_ns()


def _unknown(there: Stat) -> FileVersion:
    return FileVersion(sha256="", content=None, size=there.size)


def _read(path: str, there: Stat) -> FileText | FileBytes | None:
    """Read a file that is still the one that was seen; None: it is not, or is too large. Blocks."""
    if there.size > MOST_BYTES:
        return None
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            data = file.read(MOST_BYTES + 1)
            found = os.fstat(opened)
    except OSError:
        return None
    seen = Stat(found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
    return _content(path, data) if seen == there and len(data) == there.size else None


def _content(path: str, data: bytes) -> FileText | FileBytes:
    decoded = decode_text(data)
    digest = sha256_of(data)
    if decoded is None:
        return FileBytes(path=Path(path), data=data, sha256=digest)
    return FileText(
        path=Path(path),
        text=decoded.text,
        source="disk",
        sha256=digest,
        encoding=decoded.encoding,
        bom=decoded.bom,
    )
