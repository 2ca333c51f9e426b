"""The named view of a session's changes: list, pending counts, and the user's decisions."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from agent_core.changes import ChangeLog
from agent_core.changes.change_set import ChangeRange, ChangeSet, change_set
from agent_core.changes.commit_check import committed
from agent_core.changes.decisions import QueuedRejection
from agent_core.changes.diff.patch import file_patch, git_patch
from agent_core.changes.history.hunk_tracker import FileReview
from agent_core.events import ChangeCounts, Notice
from agent_core.kernel import RunId
from agent_core.kernel.errors import CheckpointUnknown
from agent_core.session.changes.proposals import ApplyResult, apply_again
from agent_core.session.changes.review import ReviewRequest, ReviewResult, check_requests
from agent_core.session.context import SessionContext
from agent_core.session.runs.slot import ActivitySlot
from agent_core.workspace import FileText
from agent_core.workspace.files.text import encode_text


class ChangesView:
    """View of the changes of a session, and of the user's decisions about them."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot) -> None:
        self._parts = parts
        self._runs = runs

    @property
    def log(self) -> ChangeLog:
        """Every change, in its order."""
        return self._parts.changes.log

    @property
    def counts(self) -> ChangeCounts:
        """Counts of the changes that wait for the user's decision."""
        return self._parts.changes.counts

    async def list(self, *, run: RunId | None = None, since: str | None = None) -> ChangeSet:
        """Return what was changed, as it is at this moment: in editors, on the disk, and in git.

        Args:
            run: Only what this run changed.
            since: Only what was changed after a checkpoint.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        extent = self._extent(run=run, since=since)
        await self._see_commits(await self._files(extent))
        return change_set(extent, await self._files(extent), self.log.all)

    async def of_run(self, run: RunId) -> ChangeSet:
        """Return what a run that has just ended changed: git is not asked, nobody can have committed it yet."""
        extent = self._extent(run=run, since=None)
        return change_set(extent, await self._files(extent), self.log.all)

    async def at(self, path: Path, text: str | None = None) -> FileReview | None:
        """Return one changed file in its present state; None: the session never changed it.

        The pending counts are updated, and published when they differ.

        Args:
            path: Absolute and resolved.
            text: The present text, if the caller knows it; None: the file is read.
        """
        if text is None:
            return await self._parts.review.now(path)
        return await self._parts.changes.at(path, text, is_there=True)

    async def resolve(
        self, wishes: Sequence[ReviewRequest], *, note: str | None = None
    ) -> tuple[ReviewResult, ...]:
        """Accept or reject changes; rejections of changes of the active run are done at its end.

        The model receives rejections and the note at its next run. Cancellation of the caller does not stop the work.

        Raises:
            UsageError: The note is too long, or there are too many wishes; nothing changed.
        """
        check_requests(wishes, note)
        decide = partial(
            self._parts.review.decide, wishes, note=note, sets=self._set, waits=self._waits
        )
        return await self._parts.recorder.background.run(decide)

    async def take_up(self) -> None:
        """Do the rejections that waited for the end of a run when a process died, and say what became of them.

        To be called once those are there who have files of the workspace open.
        """
        for queued, outcome in await self._parts.recorder.background.run(
            self._parts.review.take_up
        ):
            self._parts.publisher.publish(_taken_up(queued, outcome))

    async def apply(self, path: Path, *, before: str, after: str) -> ApplyResult:
        """Apply an edit that could not be applied when the agent made it: it is merged into the present file.

        Cancellation of the caller does not stop the work.

        Args:
            path: The file.
            before: The text that the edit was made for.
            after: The text that results from the edit.

        Raises:
            WorkspaceError: The file cannot be written; it is as it was.
        """
        applying = partial(apply_again, self._parts, path, before=before, after=after)
        return await self._parts.recorder.background.run(applying)

    async def patch(self, *, run: RunId | None = None, since: str | None = None) -> str:
        """Return a patch for git of what was changed and still stands.

        Raises:
            CheckpointUnknown: There is no such checkpoint.
        """
        extent = self._extent(run=run, since=since)
        files = change_set(extent, await self._files(extent), self.log.all).files
        root, contents = self._parts.place.workspace.root, self._parts.contents
        patches = [await file_patch(one, root=root, contents=contents) for one in files]
        return await to_thread.run_sync(git_patch, patches)

    def lost(self) -> str | None:
        """Name what commands of this session changed and no restore brings back, in a sentence; None: there is nothing."""
        return self._parts.changes.lost(None, self._parts.place.workspace.root)

    def _extent(self, *, run: RunId | None, since: str | None) -> ChangeRange:
        checkpoints = self._parts.checkpoints
        if since is not None:
            found = checkpoints.get(since)
            return ChangeRange(id=since, base=since, first=found.changes, run=run)
        if run is None:
            session = str(self._parts.session)
            base = checkpoints.all[0].id if checkpoints.all else session
            return ChangeRange(id=session, base=base)
        base = next((one.id for one in checkpoints.all if one.run == run), str(run))
        return ChangeRange(id=str(run), base=base, run=run)

    async def _files(self, extent: ChangeRange) -> tuple[FileReview, ...]:
        """Return the files of an extent as they are now; those that it does not touch are not looked at."""
        found: list[FileReview] = []
        for file in await self._parts.changes.files():
            if any(extent.has(run, index) for run, index in file.runs):
                now = await self._parts.review.now(file.path)
                found.append(now or file)
        return tuple(found)

    # ------------------------------------------------------------------ resolving

    def _set(self, name: str) -> Callable[[FileReview], FileReview | None] | None:
        """Return what of a file belongs to a change set, by its id: of a run, a checkpoint or the session."""
        extent: ChangeRange | None = None
        if name == self._parts.session:
            extent = self._extent(run=None, since=None)
        elif any(one.run == name for one in self.log.all):
            extent = self._extent(run=RunId(name), since=None)
        else:
            try:
                extent = self._extent(run=None, since=name)
            except CheckpointUnknown:
                return None
        return partial(_part, extent, self.log)

    def _waits(self, path: Path) -> Callable[[], Awaitable[object]] | None:
        """Return what to wait for before something is taken out of a file: the end of a run that has changed it."""
        current = self._runs.current
        run = None if current is None else current.run
        if run is None or not self._parts.changes.touches(path, run):
            return None
        return partial(self._runs.wait, run)

    # ------------------------------------------------------------------ git

    async def _see_commits(self, files: Sequence[FileReview]) -> None:
        """Accept what was committed as it is now."""
        parts = self._parts
        waiting = {
            one.path: one for one in files if one.is_pending and one.last is not None and one.text
        }
        bytes_of: dict[Path, Callable[[], bytes]] = {}
        for path in waiting:
            found = await parts.review.look(path)
            if isinstance(found, FileText) and not found.dirty:
                bytes_of[path] = partial(
                    encode_text, found.text, encoding=found.encoding, bom=found.bom
                )
        if not bytes_of:
            return
        since_ms = min(self._first_ms(waiting[path]) for path in bytes_of)
        for path in await committed(
            bytes_of,
            root=parts.place.workspace.root,
            roots=parts.place.workspace.roots,
            since_ms=since_ms,
            processes=parts.place.workspace.processes,
            env=parts.place.workspace.env,
        ):
            ids = [one.id for one in waiting[path].hunks if one.is_pending]
            await parts.review.accept(path, ids, whole=True, by="git")

    def _first_ms(self, file: FileReview) -> int:
        log = self.log.all
        indices = [one.maker.index for one in file.hunks if one.is_pending]
        return log[max(indices) if indices else file.runs[-1][1]].at_ms


def _part(extent: ChangeRange, log: ChangeLog, file: FileReview) -> FileReview | None:
    found = change_set(extent, (file,), log.all).files
    return found[0] if found else None


def _taken_up(queued: QueuedRejection, outcome: ReviewResult) -> Notice:
    said = f"You rejected changes of {queued.path.name} during a run, and the process ended before the run did."
    if outcome.status == "done":
        return Notice(level="info", text=f"{said} They are taken back now.")
    why = outcome.why or "they are not there any more, or were decided otherwise"
    return Notice(level="warning", text=f"{said} They were not taken back: {why}.")
