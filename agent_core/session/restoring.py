"""Takes files back to a checkpoint: what only this session changed; never what a person did since, unless they say so."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_core.changes import Change, Contents, FileVersion
from agent_core.changes.raw import RawFiles
from agent_core.changes.restoring import Group, Now, Status, changed_paths, plan
from agent_core.changes.taking_back import Against, Goal, merged_goals
from agent_core.changes.versions import keep, look_at, same_version, text_of
from agent_core.kernel.errors import AccessRefused, FileMissing, NotText, WorkspaceError
from agent_core.kernel.shield import uncancelled
from agent_core.session.carried_text import CarriedText, names_of
from agent_core.workspace import FileBytes, Files, FileText

OnConflict = Literal["skip", "merge", "overwrite"]
"""What becomes of files that somebody else changed too: left alone, taken back around the other changes where those are in
other lines, or taken back whole."""
Found = Mapping[Path, FileText | FileBytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that was left as it is."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What restoring would do to one file."""

    path: Path
    status: Status
    before: str | None
    """The text that is there now; None: there is none, or it is no text."""
    after: str | None
    """The text that would be there."""
    why: str | None
    """Why it cannot be taken back at all; None: it can."""
    is_text: bool = True
    """Whether both texts are told: the file is text on both sides, as far as there is one."""


class Restorer:
    """Takes files back. Whoever uses it sees to it that nothing else changes them meanwhile on our side."""

    def __init__(
        self,
        files: Files,
        raw: RawFiles | None,
        contents: Contents,
        *,
        wrote: Callable[[Path, FileVersion | None, FileVersion], Awaitable[None]],
    ) -> None:
        """Take where the files are.

        Args:
            files: Those of the workspace, with their changes written down.
            raw: Puts bytes back; None: what is no text in UTF-8 stays as it is.
            contents: Where older versions are kept.
            wrote: Writes down what was changed through `raw`.
        """
        self._files = files
        self._raw = raw
        self._contents = contents
        self._wrote = wrote

    async def preview(self, changes: Sequence[Change]) -> tuple[Preview, ...]:
        """Say what going back over changes means for every file, and change nothing."""
        now = await self._now(changes)
        return tuple(
            [
                await self._previewed(path, group, now.get(path))
                for group in plan(changes, now)
                for path in group.paths
            ]
        )

    async def _previewed(self, path: Path, group: Group, now: FileVersion | None) -> Preview:
        wanted = group.wanted[path]
        before = None if now is None else _text_in(await self._read(path))
        after = None if wanted is None else await self._text(wanted)
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
        """Go back over changes; what fails is said, and what was done until then stays done.

        Args:
            changes: All since the checkpoint, oldest first.
            only: The files that are meant, with those that were moved to or from them; None: all.
            on_conflict: What becomes of files that somebody else changed too.
            restored: Gets what was taken back, as it happens: whoever stops this still knows.
            skipped: The same for what was left as it is.
        """
        groups = [
            group
            for group in plan(changes, await self._now(changes))
            if only is None or set(group.paths) & set(only)
        ]
        whys = await self._first_look(groups, on_conflict)
        for at, group in enumerate(groups):
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
        self, groups: Sequence[Group], on_conflict: OnConflict
    ) -> Mapping[int, str]:
        """Say which groups stay, and why, before anything is changed."""
        whys: dict[int, str] = {}
        all_goals: dict[int, Mapping[Path, Goal]] = {}
        for at, group in enumerate(groups):
            if group.status == "same":
                continue
            try:
                found, now = await self._found(group)
                goals = await self._goals(group, found, now, on_conflict)
            except WorkspaceError as error:
                goals = Against(str(error))
            if isinstance(goals, Against):
                whys[at] = goals.why
            else:
                all_goals[at] = goals
        stays = [one for at, one in enumerate(groups) if at in whys or _is_mixed(one)]
        if on_conflict == "overwrite" or not all_goals or not stays:
            return whys
        goers = [(at, groups[at], goals) for at, goals in all_goals.items()]
        return {**whys, **await CarriedText(self._read, self._text).holders(goers, stays)}

    async def _found(self, group: Group) -> tuple[Found, Now]:
        found = {path: await self._read(path) for path in group.paths}
        return found, {path: one and await look_at(one) for path, one in found.items()}

    async def _take_back(
        self, group: Group, on_conflict: OnConflict, done: list[Path]
    ) -> str | None:
        """Take a group back as it is in this moment; gives what stands against all or the rest of it."""
        if group.status == "same" or group.why is not None:
            return group.why
        try:
            found, now = await self._found(group)
            (group,) = plan(group.changes, now)
            goals = await self._goals(group, found, now, on_conflict)
            if isinstance(goals, Against):
                return goals.why
            open_ = {path: goal for path, goal in goals.items() if not _holds(now[path], goal)}
            await self._reach(open_, found, done)
        except WorkspaceError as error:
            return str(error)
        return None

    async def _goals(
        self, group: Group, found: Found, now: Now, on_conflict: OnConflict
    ) -> Mapping[Path, Goal] | Against:
        if group.why is not None:
            return Against(group.why)
        if group.status == "agentOnly" or on_conflict == "overwrite":
            return group.wanted
        if on_conflict == "merge":
            texts = {id(version): _text_in(found[path]) for path, version in now.items()}

            async def text(version: FileVersion) -> str | None:
                return texts[id(version)] if id(version) in texts else await self._text(version)

            return await merged_goals(group, now, text)
        names = names_of(group)
        how = "deleted" if group.status == "missing" else "changed"
        return Against(f"{names}: {how} since by somebody else, so it was left as it is")

    async def _reach(self, goals: Mapping[Path, Goal], seen: Found, done: list[Path]) -> None:
        """Make files hold what they are to; whatever stops it, `done` names those that do."""
        found = dict(seen)
        for path, goal in goals.items():
            await self._check_kept(path, found[path])
            if isinstance(goal, FileVersion):
                _ = await self._bytes(path, goal)
        if (ends := _moved_back(goals, found)) is not None:
            source, target = ends
            await self._files.move(source, target)
            done.append(source)
            found[target], found[source] = await self._files.read(target), None
            goals = {path: goal for path, goal in goals.items() if path != source}
        # What is put somewhere comes before what is taken away: a failure in between loses nothing.
        for path in sorted(goals, key=lambda one: goals[one] is None):
            await self._put(path, goals[path], found[path])
            done.append(path)

    async def _check_kept(self, path: Path, found: FileText | FileBytes | None) -> None:
        """Refuse to change what could not be brought back."""
        if found is not None and (await keep(found, self._contents)).content is None:
            message = f"{path.name} is too large to be kept as it is now, so it was left alone"
            raise AccessRefused(message)

    async def _put(self, path: Path, goal: Goal, found: FileText | FileBytes | None) -> None:
        if goal is None:
            if found is not None:
                await self._files.delete(path, base=found)
            return
        text = goal if isinstance(goal, str) else await self._text(goal)
        if text is not None and _fits(goal, found):
            base = found if isinstance(found, FileText) else None
            if base is None or base.text != text:
                _ = await self._files.write(path, text, base=base)
            return
        if isinstance(goal, FileVersion):
            await self._put_bytes(path, goal, found)
            return
        message = f"{path.name} is no text any more, so nothing can be merged into it"
        raise NotText(message)

    async def _put_bytes(
        self, path: Path, goal: FileVersion, found: FileText | FileBytes | None
    ) -> None:
        if self._raw is None or (isinstance(found, FileText) and found.source == "buffer"):
            message = (
                f"{path.name} was in another encoding or no text, which cannot be put back here"
            )
            raise AccessRefused(message)
        data = await self._bytes(path, goal)
        before = None if found is None else await keep(found, self._contents)
        await uncancelled(self._put_and_tell(path, data, found, before, goal))

    async def _put_and_tell(
        self,
        path: Path,
        data: bytes,
        found: FileText | FileBytes | None,
        before: FileVersion | None,
        after: FileVersion,
    ) -> None:
        if self._raw is not None:
            await self._raw.put_bytes(path, data, base=found)
            await self._wrote(path, before, after)

    async def _bytes(self, path: Path, version: FileVersion) -> bytes:
        data = None if version.content is None else await self._contents.get(version.content)
        if data is None:
            message = f"what {path.name} held before is damaged or gone from where it was kept"
            raise FileMissing(message)
        return data

    async def _text(self, version: FileVersion) -> str | None:
        if version.content is None or not version.is_text:
            return None
        data = await self._contents.get(version.content)
        return None if data is None else text_of(version, data)


def _is_mixed(group: Group) -> bool:
    """Tell whether files that are as they were held something of somebody else's in between."""
    return group.status == "same" and not group.is_ours_alone


def _status_of(path: Path, group: Group, now: FileVersion | None) -> Status:
    """Give one file's status; of files that belong together some may be as they were."""
    if group.status != "same" and path in group.wanted and same_version(now, group.wanted[path]):
        return "same"
    return group.status


def _text_in(found: FileText | FileBytes | None) -> str | None:
    return found.text if isinstance(found, FileText) else None


def _holds(now: FileVersion | None, goal: Goal) -> bool:
    return not isinstance(goal, str) and same_version(now, goal)


def _moved_back(goals: Mapping[Path, Goal], found: Found) -> tuple[Path, Path] | None:
    """Give from where to where a file goes back to its old name: it keeps what a copy would not, its rights for one."""
    gone = [path for path, goal in goals.items() if goal is None]
    come = [path for path, goal in goals.items() if goal is not None and found[path] is None]
    if len(gone) == 1 and len(come) == 1 and found[gone[0]] is not None:
        return gone[0], come[0]
    return None


def _fits(goal: Goal, found: FileText | FileBytes | None) -> bool:
    """Tell whether writing the text writes the bytes as they were: encoding and mark are those of what is there."""
    if isinstance(found, FileBytes):
        return False
    encoding, bom = ("utf-8", False) if found is None else (found.encoding, found.bom)
    return not isinstance(goal, FileVersion) or (goal.encoding, goal.bom) == (encoding, bom)
