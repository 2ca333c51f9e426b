"""The moments to which a session's files can be taken back: before each run's first change, rejection and restore."""

from collections.abc import Callable, Iterable, Sequence

from agent_core.changes import BlobStore, Change, ChangeLog, Checkpoint
from agent_core.changes.checkpoint_codec import decode_checkpoint
from agent_core.changes.codec import decode_change
from agent_core.changes.revert.plan import changed_paths
from agent_core.events import CheckpointCreated, CheckpointInfo, Event
from agent_core.kernel import Clock, EntryId, RunId
from agent_core.kernel.errors import CheckpointUnknown
from agent_core.kernel.json import as_object
from agent_core.session.history.entries import CHANGE, CHECKPOINT, checkpoint_entry
from agent_core.session.history.recorder import Recorder
from agent_core.transcript.entries import AnyEntry, CustomEntry


class Checkpoints:
    """Makes them and knows them. Only what was written down counts: a run that changes nothing has none."""

    def __init__(
        self,
        changes: ChangeLog,
        *,
        contents: BlobStore,
        recorder: Recorder,
        clock: Clock,
        new_id: Callable[[], str],
        publish: Callable[[Event], object],
        current_run: Callable[[], RunId | None],
        existing: Iterable[Checkpoint] = (),
    ) -> None:
        self._changes = changes
        self._contents = contents
        self._recorder = recorder
        self._clock = clock
        self._new_id = new_id
        self._publish = publish
        self._current_run = current_run
        self._all = list(existing)
        self._leaves: dict[RunId, EntryId | None] = {}

    @property
    def all(self) -> Sequence[Checkpoint]:
        """All of them, oldest first."""
        return tuple(self._all)

    def get(self, checkpoint: str) -> Checkpoint:
        """Return one.

        Raises:
            CheckpointUnknown: There is none of that id.
        """
        for one in self._all:
            if one.id == checkpoint:
                return one
        message = f"the session has no checkpoint {checkpoint!r}; list those that it has"
        raise CheckpointUnknown(message)

    def begin_run(self, run: RunId, leaf: EntryId | None) -> None:
        """Report where the conversation stood before a run's words."""
        self._leaves = {run: leaf}

    async def before(self, run: RunId | None) -> None:
        """Make the checkpoint of a run that is about to write down its first change; later ones need none."""
        if run is None or any(one.run == run for one in reversed(self._all)):
            return
        leaf = self._leaves.get(run, self._recorder.transcript.leaf)
        _ = await self._make(run, leaf)

    async def before_reverting(self, *, restores: str | None = None) -> Checkpoint:
        """Make the checkpoint that takes a restore or a rejection back, and let it survive a power cut.

        Args:
            restores: The checkpoint to which all files go back; None: only some do, or none.
        """
        made = await self._make(None, self._recorder.transcript.leaf, restores=restores)
        await self._recorder.sync()
        return made

    async def settle(self, changes: Iterable[Change]) -> None:
        """Sync the contents of changed files and the session file to the disk, so that they survive a power cut."""
        versions = [version for one in changes for version in (one.before, one.after)]
        keys = {one.content for one in versions if one is not None and one.content is not None}
        await self._contents.sync(keys)
        await self._recorder.sync()

    async def settle_run(self, run: RunId) -> None:
        """Do the same for what a run changed."""
        await self.settle(one for one in self._changes.all if one.run == run)

    def shown(self, one: Checkpoint) -> CheckpointInfo:
        """Return what front ends see."""
        place = self._all.index(one)
        following = self._all[place + 1].changes if place + 1 < len(self._all) else None
        since = self._changes.since(one.changes)
        until = since if following is None else since[: following - one.changes]
        return CheckpointInfo(
            checkpoint=one.id, run=one.run, at_ms=one.at_ms, files=len(changed_paths(until))
        )

    async def _make(
        self, run: RunId | None, leaf: EntryId | None, *, restores: str | None = None
    ) -> Checkpoint:
        one = Checkpoint(
            id=self._new_id(),
            run=run,
            at_ms=self._clock.now_ms(),
            changes=len(self._changes),
            leaf=leaf,
            restores=restores,
        )
        # Known before it is written, so that a second change of the same run does not make another meanwhile.
        self._all.append(one)
        _ = await self._recorder.keep(checkpoint_entry(one))
        # Nothing of a run follows its end.
        event_run = run if run == self._current_run() else None
        _ = self._publish(CheckpointCreated(run=event_run, checkpoint=self.shown(one)))
        return one


def checkpoints_of(entries: Iterable[AnyEntry]) -> tuple[Checkpoint, ...]:
    """Read the checkpoints of a session from all of its entries, in the order of the file."""
    found: list[Checkpoint] = []
    changes = 0
    for entry in entries:
        if not isinstance(entry, CustomEntry):
            continue
        if entry.custom_type == CHANGE:
            changes += decode_change(as_object(entry.data)) is not None
        elif entry.custom_type == CHECKPOINT:
            one = decode_checkpoint(as_object(entry.data), changes=changes)
            found += () if one is None else (one,)
    return tuple(found)
