"""Checkpoints: made, kept and restored."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.changes import BlobStore, Change, ChangeLog, Checkpoint, FileVersion
from agent_core.changes.revert import (
    CurrentVersions,
    RestoreGroup,
    RestoreStatus,
    RevertConflict,
    TargetState,
    changed_paths,
    merged_targets,
    plan,
    why_lost,
)
from agent_core.changes.values import decode_change, decode_checkpoint, look_at, same_version
from agent_core.events import (
    Answers,
    CheckpointCreated,
    CheckpointInfo,
    Event,
    QuestionLine,
    QuestionOption,
)
from agent_core.kernel import Clock, EntryId, RunId
from agent_core.kernel.errors import CheckpointUnknown, FileMissing, WorkspaceError
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.session.changes.file_reverter import (
    FileReverter,
    PresentFiles,
    is_open_text,
    write_together,
)
from agent_core.session.history.entries import CHANGE, CHECKPOINT, checkpoint_entry
from agent_core.session.history.recorder import Recorder
from agent_core.transcript.entries import AnyEntry, CustomEntry
from agent_core.workspace import FileBytes, Files, FileText, FileWrite
from agent_core.workspace.files.paths import relative_name

OnConflict = Literal["skip", "merge", "overwrite"]
"""How a restore handles files that another author changed too: skip them, merge where the other changes are in other
lines, or overwrite them."""


class Skipped(Value, frozen=True, kw_only=True):
    """A file that was left as it is."""

    path: Path
    why: str


class Preview(Value, frozen=True, kw_only=True):
    """Effect of a restore on one file."""

    path: Path
    status: RestoreStatus
    before: str | None
    """The text that is there now; None: there is none, or it is no text."""
    after: str | None
    """The text that would be there."""
    why: str | None
    """Why it cannot be taken back at all; None: it can."""
    is_text: bool = True
    """Whether both texts are told: the file is text on both sides, as far as there is one."""


class Restorer:
    """Restorer of files. The caller ensures that the session changes none of them meanwhile."""

    def __init__(self, files: Files, reverter: FileReverter) -> None:
        self._files = files
        self._reverter = reverter

    async def preview(self, changes: Sequence[Change]) -> tuple[Preview, ...]:
        """Return what going back over changes means for every file, and change nothing."""
        now = await self._now(changes)
        return tuple(
            [
                await self._previewed(path, group, now.get(path))
                for group in plan(changes, now)
                for path in group.paths
            ]
        )

    async def _previewed(self, path: Path, group: RestoreGroup, now: FileVersion | None) -> Preview:
        wanted = group.wanted[path]
        before = None if now is None else _text_in(await self._read(path))
        after = None if wanted is None else await self._reverter.text(wanted)
        return Preview(
            path=path,
            status=_status_of(path, group, now),
            before=before,
            after=after,
            why=group.why,
            is_text=(now is None) == (before is None) and (wanted is None) == (after is None),
        )

    async def restore(
        self,
        changes: Sequence[Change],
        *,
        only: Collection[Path] | None,
        on_conflict: OnConflict,
        restored: list[Path],
        skipped: list[Skipped],
    ) -> None:
        """Revert changes; failures are reported in `skipped`, and files restored before a failure stay restored.

        Args:
            changes: All since the checkpoint, oldest first.
            only: The files to restore, with those that were moved to or from them; None: all.
            on_conflict: How files are handled that another author changed too.
            restored: Receives each restored path at once, so that the caller has them after a cancellation.
            skipped: Receives the files that were left as they are.
        """
        groups = [
            group
            for group in plan(changes, await self._now(changes))
            if only is None or set(group.paths) & set(only)
        ]
        whys, open_ = await self._first_look(groups, on_conflict)
        together = {at: groups[at] for at in open_ if at not in whys}
        ends = await self._take_back_together(together, on_conflict, restored)
        for at, group in enumerate(groups):
            if at in ends:
                why = ends[at]
            else:
                why = whys.get(at) or await self._take_back(group, on_conflict, restored)
            if why is not None:
                left = [path for path in group.paths if path not in restored]
                skipped += [Skipped(path=path, why=why) for path in left]

    async def _now(self, changes: Sequence[Change]) -> Mapping[Path, FileVersion | None]:
        """Look at every file; one after another, for together they may be too much for the memory."""
        now: dict[Path, FileVersion | None] = {}
        for path in changed_paths(changes):
            # What cannot be read is left out: the plan says so.
            with suppress(WorkspaceError):
                found = await self._read(path)
                now[path] = None if found is None else await look_at(found)
        return now

    async def _read(self, path: Path) -> FileText | FileBytes | None:
        try:
            return await self._files.read(path)
        except FileMissing:
            return None

    async def _first_look(
        self, groups: Sequence[RestoreGroup], on_conflict: OnConflict
    ) -> tuple[Mapping[int, str], Collection[int]]:
        """Return which groups stay, and why, before anything is changed; and which are nothing but texts of open documents."""
        from agent_core.changes.revert import MovedTextFinder  # noqa: PLC0415 - at first use

        whys: dict[int, str] = {}
        open_: list[int] = []
        all_goals: dict[int, Mapping[Path, TargetState]] = {}
        for at, group in enumerate(groups):
            if group.status == "same":
                continue
            if group.why is not None:
                whys[at] = group.why
                continue
            try:
                found, now = await self._found(group)
                goals = await self._goals(group, found, now, on_conflict)
            except WorkspaceError as error:
                whys[at] = str(error)
                continue
            if isinstance(goals, RevertConflict):
                whys[at] = goals.why
            else:
                all_goals[at] = goals
                if is_open_text(_not_held(goals, now), found):
                    open_.append(at)
        stays = [one for at, one in enumerate(groups) if at in whys or _is_mixed(one)]
        if on_conflict == "overwrite" or not all_goals or not stays:
            return whys, open_
        goers = [(at, groups[at], goals) for at, goals in all_goals.items()]
        carried = MovedTextFinder(self._read, self._reverter.text)
        return {**whys, **await carried.holders(goers, stays)}, open_

    async def _found(self, group: RestoreGroup) -> tuple[PresentFiles, CurrentVersions]:
        found = {path: await self._read(path) for path in group.paths}
        return found, {path: one and await look_at(one) for path, one in found.items()}

    async def _take_back(
        self, group: RestoreGroup, on_conflict: OnConflict, done: list[Path]
    ) -> str | None:
        """Restore a group as it is now; return the reason if all or a part of it could not be restored, else None."""
        if group.status == "same" or group.why is not None:
            return group.why
        try:
            found, goals = await self._goals_now(group, on_conflict)
            if isinstance(goals, RevertConflict):
                return goals.why
            await self._reverter.restore(goals, found, done)
        except WorkspaceError as error:
            return str(error)
        return None

    async def _take_back_together(
        self, groups: Mapping[int, RestoreGroup], on_conflict: OnConflict, done: list[Path]
    ) -> Mapping[int, str | None]:
        """Restore texts of open documents in one edit; return, per group tried, the reason of a failure or None."""
        writes: list[FileWrite] = []
        whose: dict[Path, int] = {}
        for at, group in groups.items():
            # What fails here is tried alone, and told then.
            with suppress(WorkspaceError):
                found, goals = await self._goals_now(group, on_conflict)
                if isinstance(goals, RevertConflict):
                    continue
                own = await self._reverter.writes(goals, found)
                writes += own
                whose |= {one.path: at for one in own}
        if len(whose) <= 1:
            return {}
        whys: dict[int, str | None] = {}
        for path, error in (await write_together(self._files, writes, done)).items():
            whys[whose[path]] = whys.get(whose[path]) if error is None else str(error)
        return whys

    async def _goals_now(
        self, group: RestoreGroup, on_conflict: OnConflict
    ) -> tuple[PresentFiles, Mapping[Path, TargetState] | RevertConflict]:
        """Return what the files of a group are to hold that do not hold it in this moment."""
        found, now = await self._found(group)
        (group,) = plan(group.changes, now)
        goals = await self._goals(group, found, now, on_conflict)
        return found, goals if isinstance(goals, RevertConflict) else _not_held(goals, now)

    async def _goals(
        self,
        group: RestoreGroup,
        found: PresentFiles,
        now: CurrentVersions,
        on_conflict: OnConflict,
    ) -> Mapping[Path, TargetState] | RevertConflict:
        from agent_core.changes.revert import names_of  # noqa: PLC0415 - at first use

        if group.why is not None:
            return RevertConflict(group.why)
        if group.status == "agentOnly" or on_conflict == "overwrite":
            return group.wanted
        if on_conflict == "merge":
            present = {id(version): _text_in(found[path]) for path, version in now.items()}

            async def text(version: FileVersion) -> str | None:
                key = id(version)
                return present[key] if key in present else await self._reverter.text(version)

            return await merged_targets(group, now, text)
        names = names_of(group)
        how = "deleted" if group.status == "missing" else "changed"
        return RevertConflict(
            f"{names}: {how} since, and not by a change that this session recorded, so it was left as it is"
        )


def _is_mixed(group: RestoreGroup) -> bool:
    """Return whether files that are as they were held something of somebody else's in between."""
    return group.status == "same" and not group.is_ours_alone


def _status_of(path: Path, group: RestoreGroup, now: FileVersion | None) -> RestoreStatus:
    """Return one file's status; of files that belong together some may be as they were."""
    if group.status != "same" and path in group.wanted and same_version(now, group.wanted[path]):
        return "same"
    return group.status


def _text_in(found: FileText | FileBytes | None) -> str | None:
    return found.text if isinstance(found, FileText) else None


def _not_held(
    goals: Mapping[Path, TargetState], now: CurrentVersions
) -> Mapping[Path, TargetState]:
    return {
        path: goal
        for path, goal in goals.items()
        if isinstance(goal, str) or not same_version(now[path], goal)
    }


RestoreScope: TypeAlias = Literal["files", "conversation", "both"]
NAMES_SHOWN: Final = 40
NAMES_ASKED: Final = 3
"""A dialog has room for so many."""
NAMES_LISTED: Final = 10
"""A line of a terminal or a panel has room for so many."""
LINE: Final = "restore"
BACK: Final = "back"
KEEP: Final = "keep"
NOTHING: Final = (
    "Nothing of what the last run changed can be taken back: it is as it was, or was changed since."
)


def question(shown: Sequence[Preview]) -> QuestionLine | None:
    """Ask whether files are to go back, saying which stay; None: none would."""
    back = [one.path.name for one in shown if one.status == "agentOnly" and one.why is None]
    stay = [one.path.name for one in shown if one.status in {"userEdited", "missing"} or one.why]
    if not back:
        return None
    text = f"Take back what the last run changed in {_short(back)}?"
    if stay:
        text += f" {_short(stay)} {'was' if len(stay) == 1 else 'were'} changed since, or cannot be taken back, and will stay."
    return QuestionLine(
        id=LINE,
        text=text,
        kind="choice",
        options=(
            QuestionOption(id=BACK, label="Take back"),
            QuestionOption(id=KEEP, label="Leave as it is"),
        ),
        default=KEEP,
    )


def agreed(answers: Answers) -> bool:
    """Return whether somebody said that files are to go back."""
    return (answers.answers or {}).get(LINE) == BACK


def restored_message(restored: Collection[Path], skipped: Sequence[Skipped]) -> str:
    """Return the result of a restore as text for people: the restored and the skipped files."""
    said = f"Taken back: {_names(restored)}." if restored else "Nothing had to be taken back."
    return f"{said} Left: {'; '.join(_whys(skipped))}." if skipped else said


def nothing_restored_message(skipped: Sequence[Skipped]) -> str:
    """Return why no file could be taken back."""
    return f"no file was restored: {'; '.join(_whys(skipped))}"


def model_note(
    restored: Collection[Path],
    skipped: Sequence[Skipped],
    scope: RestoreScope,
    changes: Sequence[Change],
) -> str | None:
    """Return the note for the model on how files and conversation differ after a restore; None: they do not."""
    left = _names([one.path for one in skipped])
    if scope == "files" and restored:
        said = (
            f"[The user took files back to how they were earlier: {_names(restored)}. What was changed in them "
            "since then is gone; read them again before you rely on what they hold.]"
        )
        return f"{said}\n[Left as they were: {left}.]" if left else said
    if scope == "conversation" and changes:
        names = _names(dict.fromkeys(one.path for one in changes))
        return (
            "[The user took the conversation back to here, and not the files. They may hold changes that you do not know "
            f"of: {names}. Read them before you rely on what they hold.]"
        )
    if scope == "both" and left:
        return (
            "[The user took the conversation and the files back to here. These files could not be taken back and hold "
            f"later changes: {left}.]"
        )
    return None


def unrecoverable_note(changes: Sequence[Change], root: Path) -> str | None:
    """Name what commands deleted or overwrote and no restore brings back; None: there is nothing of the kind."""
    by_why: dict[str, dict[str, None]] = {}
    for change in changes:
        if change.is_lost:
            path = change.source or change.path
            _ = by_why.setdefault(why_lost((change,)), {}).setdefault(relative_name(path, root))
    if not by_why:
        return None
    groups = [f"{_listed(list(names))} ({why})" for why, names in by_why.items()]
    return f"Undo cannot bring back {'; '.join(groups)}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_LISTED
    return ", ".join(names[:NAMES_LISTED]) + (f" and {more} more" if more > 0 else "")


def _whys(skipped: Sequence[Skipped]) -> Sequence[str]:
    return list(dict.fromkeys(one.why for one in skipped))[:NAMES_SHOWN]


def _names(paths: Collection[Path]) -> str:
    shown = [str(path) for path in paths][:NAMES_SHOWN]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _short(names: Sequence[str]) -> str:
    more = len(names) - NAMES_ASKED
    return ", ".join(names[:NAMES_ASKED]) + (f" and {more} more" if more > 0 else "")


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
