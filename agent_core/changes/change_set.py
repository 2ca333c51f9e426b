"""Change sets for review: the changes of a session, of a run, or since a checkpoint; pure."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agent_core.changes.history.hunk_tracker import FileReview
from agent_core.changes.values import Change
from agent_core.kernel import RunId
from agent_core.kernel.values import Value


class ChangeSet(Value, frozen=True, kw_only=True):
    """Files with their hunks."""

    id: str
    """Of the run, the checkpoint or the session."""
    base: str
    """The checkpoint before it; the id again where there is none."""
    files: tuple[FileReview, ...]


class ChangeRange(Value, frozen=True, kw_only=True):
    """Which changes are meant, by their numbers."""

    id: str
    base: str
    first: int = 0
    run: RunId | None = None
    """Only those of this run."""

    def has(self, run: RunId | None, index: int) -> bool:
        """Return whether a change belongs to it."""
        return index >= self.first and (self.run is None or run == self.run)


def change_set(
    extent: ChangeRange, files: Iterable[FileReview], changes: Sequence[Change]
) -> ChangeSet:
    """Choose what belongs to an extent, the files in the order in which it changed them.

    A hunk belongs to the change that made it what it is: of lines that were edited again, to the last one.
    """
    chosen = [
        (own[0], _of(extent, file, changes, own)) for file in files if (own := _own(extent, file))
    ]
    chosen.sort(key=lambda one: one[0])
    # A file that came and went again has nothing to show.
    shown = tuple(file for _, file in chosen if file.first is not None or file.last is not None)
    return ChangeSet(id=extent.id, base=extent.base, files=shown)


def _own(extent: ChangeRange, file: FileReview) -> list[int]:
    return [index for run, index in file.runs if extent.has(run, index)]


def _of(
    extent: ChangeRange, file: FileReview, changes: Sequence[Change], own: Sequence[int]
) -> FileReview:
    first, last = changes[own[0]], changes[own[-1]]
    hunks = tuple(one for one in file.hunks if extent.has(one.maker.run, one.maker.index))
    is_whole = file.maker is not None and extent.has(file.maker.run, file.maker.index)
    origin = None if first.before is None else (first.source or first.path)
    return replace(
        file,
        origin=origin if own[0] != file.runs[0][1] else file.origin,
        first=first.before,
        last=last.after,
        hunks=hunks,
        whole=file.whole if is_whole else None,
    )
