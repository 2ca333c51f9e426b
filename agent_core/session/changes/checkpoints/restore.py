"""Restore of files to a checkpoint: reverts this session's changes; a person's later ones only on request."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from agent_core.changes import BlobStore, Change, FileVersion
from agent_core.changes.ports.byte_files import ByteFiles
from agent_core.changes.revert.plan import (
    CurrentVersions,
    RestoreGroup,
    RestoreStatus,
    changed_paths,
    plan,
)
from agent_core.changes.revert.targets import RevertConflict, TargetState, merged_targets
from agent_core.changes.versions import look_at, same_version
from agent_core.kernel.errors import FileMissing, WorkspaceError
from agent_core.kernel.values import Value
from agent_core.session.changes.checkpoints.file_restorer import (
    FileRestorer,
    PresentFiles,
    is_open_text,
)
from agent_core.session.changes.checkpoints.moved_text import MovedTextFinder, names_of
from agent_core.workspace import FileBytes, Files, FileText, FileWrite, WriteResult

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

    def __init__(
        self,
        files: Files,
        raw: ByteFiles | None,
        contents: BlobStore,
        *,
        wrote: Callable[[Path, FileVersion | None, FileVersion], Awaitable[None]],
    ) -> None:
        """Create the restorer.

        Args:
            files: Files of the workspace; changes through them are recorded.
            raw: Writes bytes; None: content that is not UTF-8 text stays as it is.
            contents: Store of older versions.
            wrote: Records a change that was made through `raw`.
        """
        self._files = files
        self._file_restorer = FileRestorer(files, raw, contents, wrote=wrote)

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
        after = None if wanted is None else await self._file_restorer.text(wanted)
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
        carried = MovedTextFinder(self._read, self._file_restorer.text)
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
            await self._file_restorer.restore(goals, found, done)
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
                own = await self._file_restorer.writes(goals, found)
                writes += own
                whose |= {one.path: at for one in own}
        if len(whose) <= 1:
            return {}
        whys: dict[int, str | None] = {}

        async def on_result(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
            if isinstance(outcome, WorkspaceError):
                whys[whose[one.path]] = str(outcome)
            else:
                done.append(one.path)
                _ = whys.setdefault(whose[one.path], None)

        await self._files.write_all(writes, on_result=on_result)
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
        if group.why is not None:
            return RevertConflict(group.why)
        if group.status == "agentOnly" or on_conflict == "overwrite":
            return group.wanted
        if on_conflict == "merge":
            texts = {id(version): _text_in(found[path]) for path, version in now.items()}

            async def text(version: FileVersion) -> str | None:
                return (
                    texts[id(version)]
                    if id(version) in texts
                    else await self._file_restorer.text(version)
                )

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
    return {path: goal for path, goal in goals.items() if not _holds(now[path], goal)}


def _holds(now: FileVersion | None, goal: TargetState) -> bool:
    return not isinstance(goal, str) and same_version(now, goal)
