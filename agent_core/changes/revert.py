"""Reverting: target contents of files while edits of the user are kept, restores to a checkpoint, moved text; pure.

Moving a function from one file to another changes both. If the user or another process edits the first file
afterwards, it is not reverted, and reverting the second file alone would remove the function from the workspace.
"""

import re
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.changes.values import MOST_BYTES, Change, FileVersion, same_version
from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace import FileBytes, FileText

RestoreStatus = Literal["same", "agentOnly", "userEdited", "missing"]
"""`same`: unchanged since. `agentOnly`: changed since by this session only. `userEdited`: changed since by others too.
`missing`: deleted since."""
GIT_FOLDER: Final = ".git"
SHORT: Final = 12
"""Digits of an object's name that people need."""
CurrentVersions = Mapping[Path, FileVersion | None]
"""The files as they are; None: nothing is there."""


class RestoreGroup(Value, frozen=True, kw_only=True):
    """Files that can only be taken back together, because something was moved from one name to the other."""

    paths: tuple[Path, ...]
    status: RestoreStatus
    wanted: Mapping[Path, FileVersion | None]
    """As they were at the checkpoint."""
    changes: tuple[Change, ...]
    """Those to go back over, oldest first."""
    is_ours_alone: bool
    """Whether only this session changed them in between, as far as detected."""
    why: str | None
    """Why they cannot be taken back at all, whoever wants it; None: they can."""


def changed_paths(changes: Iterable[Change]) -> tuple[Path, ...]:
    """Return every path that changes are about, in their order."""
    paths: dict[Path, None] = {}
    for change in changes:
        paths.update(dict.fromkeys(_paths_of(change)))
    return tuple(paths)


def plan(changes: Sequence[Change], now: CurrentVersions) -> tuple[RestoreGroup, ...]:
    """Return the restore plan for every changed file, in the order of the first changes.

    Args:
        changes: All changes since the checkpoint, oldest first.
        now: Version of every path of `changed_paths`; files that could not be read are left out.
    """
    blind = {one.id for one in changes if one.by == "process" and _is_unkept(one.before)}
    return tuple(_group(together, now, blind) for together in _together(changes))


def _group(
    changes: Sequence[Change], now: CurrentVersions, blind: AbstractSet[str]
) -> RestoreGroup:
    paths = changed_paths(changes)
    wanted = before_all(changes)
    unread = [path for path in paths if path not in now]
    lost = next((one for one in changes if one.ignored and wanted[one.path] == one.before), None)
    if lost is not None:
        # Perhaps a folder, and made again since then.
        why: str | None = f"{lost.path.name} cannot be taken back: {why_lost(changes)}"
    elif unread:
        names = ", ".join(path.name for path in unread)
        why = f"{names} cannot be read as a file now"
    else:
        why = _not_kept(wanted, now, changes) or _may_be_elsewhere(wanted, now, changes, blind)
    return RestoreGroup(
        paths=paths,
        status=_status(changes, wanted, now),
        is_ours_alone=_is_ours_alone(changes, now),
        wanted=wanted,
        changes=tuple(changes),
        why=why,
    )


def _status(
    changes: Sequence[Change], wanted: CurrentVersions, now: CurrentVersions
) -> RestoreStatus:
    if all(path in now and same_version(now[path], version) for path, version in wanted.items()):
        return "same"
    if _is_ours_alone(changes, now):
        return "agentOnly"
    left = after_all(changes)
    if any(
        version is not None and now.get(path, version) is None for path, version in left.items()
    ):
        return "missing"
    return "userEdited"


def _is_ours_alone(changes: Sequence[Change], now: CurrentVersions) -> bool:
    """Walk back from what is there now: each change must have left just what the next one found."""
    state: dict[Path, FileVersion | None] = dict(now)
    for change in reversed(not_undone(changes, now)):
        if change.maybe_user_edit:
            return False
        for path, version in ends_of(change).items():
            if path not in state or not same_version(state[path], version):
                return False
        state |= begins_of(change)
    return True


def not_undone(changes: Sequence[Change], now: CurrentVersions) -> Sequence[Change]:
    """Return the changes of one group without the newest ones that are gone from the file.

    An editor's undo takes back a rejection or an edit without a change of this session: the file then holds exactly what
    it held before that change, and nothing of anybody else. Files that were moved are left to the ordinary comparison.
    """
    path = changes[-1].path
    if path not in now or any(one.path != path or one.source is not None for one in changes):
        return changes
    if same_version(now[path], changes[-1].after):
        return changes
    for at in range(len(changes) - 1, 0, -1):
        if changes[at].maybe_user_edit:
            break
        if same_version(now[path], changes[at].before):
            return changes[:at]
    return changes


def _not_kept(
    wanted: CurrentVersions, now: CurrentVersions, changes: Sequence[Change]
) -> str | None:
    for path, version in wanted.items():
        if version is None or version.content is not None or same_version(now[path], version):
            continue
        own = [one for one in changes if path in _paths_of(one)]
        return f"{path.name} cannot be taken back: {why_lost(own)}"
    return None


def why_lost(changes: Iterable[Change]) -> str:
    """Return why what a file held before its changes cannot be brought back."""
    own = [one for one in changes if one.is_lost]
    in_git = next((one for one in own if one.ignored and GIT_FOLDER in one.path.parts), None)
    if in_git is not None:
        named = in_git.before.sha256.removeprefix("ref: ") if in_git.before else ""
        was = f"; it was {named[:SHORT]}" if named else ""
        return f"a command removed it, and undo changes nothing in repositories{was}"
    if any(one.ignored for one in own):
        return "a command deleted it, and no copy is kept of what git ignores"
    large = [one.before.size for one in own if one.before and one.before.size > MOST_BYTES]
    if large:
        return f"no copy is kept of files of more than {MOST_BYTES // 1_048_576} MiB"
    how = "a command changed it, and " if any(one.by == "process" for one in own) else ""
    return f"{how}what it held before was not kept"


def _may_be_elsewhere(
    wanted: CurrentVersions,
    now: CurrentVersions,
    changes: Sequence[Change],
    blind: AbstractSet[str],
) -> str | None:
    """Leave what a command made while it took away something of which there is no copy: it may be that."""
    for change in changes:
        goes = wanted[change.path] is None and now[change.path] is not None
        if goes and change.op == "add" and change.id in blind:
            name = change.path.name
            return f"{name} was made by a command that changed files of which no copy was kept; it may hold what they held"
    return None


def _is_unkept(version: FileVersion | None) -> bool:
    return version is not None and version.content is None


def _together(changes: Sequence[Change]) -> Iterable[Sequence[Change]]:
    """Part changes by the files that they are about; a move ties two names together."""
    leader: dict[Path, Path] = {}

    def lead(path: Path) -> Path:
        while leader.setdefault(path, path) != path:
            path = leader[path]
        return path

    for change in changes:
        first, *others = _paths_of(change)
        for other in others:
            leader[lead(other)] = lead(first)
    groups: dict[Path, list[Change]] = {}
    for change in changes:
        groups.setdefault(lead(change.path), []).append(change)
    return groups.values()


def before_all(changes: Sequence[Change]) -> dict[Path, FileVersion | None]:
    """Return what was there before the first change of each path."""
    return _folded(reversed(changes), begins_of)


def after_all(changes: Sequence[Change]) -> dict[Path, FileVersion | None]:
    """Return what was there after the last one."""
    return _folded(changes, ends_of)


def _folded(
    changes: Iterable[Change], side: Callable[[Change], CurrentVersions]
) -> dict[Path, FileVersion | None]:
    found: dict[Path, FileVersion | None] = {}
    for change in changes:
        found |= side(change)
    return found


def begins_of(change: Change) -> dict[Path, FileVersion | None]:
    """Return what the change found, by path."""
    if change.source is None:
        return {change.path: change.before}
    return {change.path: None, change.source: change.before}


def ends_of(change: Change) -> dict[Path, FileVersion | None]:
    """Return what the change left, by path."""
    if change.source is None:
        return {change.path: change.after}
    return {change.source: None, change.path: change.after}


def _paths_of(change: Change) -> tuple[Path, ...]:
    return (change.path,) if change.source is None else (change.source, change.path)


TargetState: TypeAlias = FileVersion | str | None
"""Target content of a file: an earlier version, a newly merged text, or None: the file is to be absent."""
TextOf: TypeAlias = Callable[[FileVersion], Awaitable[str | None]]
"""Returns the text of a version; None: it is no text, or was not kept."""


class RevertConflict(Value, frozen=True):
    """Why files cannot be taken back without losing what the user did."""

    why: str


async def merged_targets(
    group: RestoreGroup, now: CurrentVersions, text_of: TextOf
) -> Mapping[Path, TargetState] | RevertConflict:
    """Return what the files are to hold so that this session's changes are gone and all others are still there.

    Goes back over the changes, newest first. Where somebody changed the file in between, the way back over a change is
    merged into what is there.
    """
    state: dict[Path, TargetState] = dict(now)
    for change in reversed(not_undone(group.changes, now)):
        if not change.maybe_user_edit and _is_exact(change, state):
            state |= begins_of(change)
            continue
        stopped = await _around(change, state, text_of)
        if stopped is not None:
            return stopped
    return state


async def _around(
    change: Change, state: dict[Path, TargetState], text_of: TextOf
) -> RevertConflict | None:
    """Go back over a change that is not the last one that was made; changes the state."""
    from agent_core.workspace.diff.merge import merge  # noqa: PLC0415 - at first use

    name = change.path.name
    if (why := _in_the_way(change, state)) is not None:
        return RevertConflict(f"{name} {why}")
    theirs = await _text(state[change.path], text_of)
    base, ours = await _text(change.after, text_of), await _text(change.before, text_of)
    if theirs is None or base is None or ours is None:
        return RevertConflict(f"{name} was changed since, and its older texts were not kept")
    if change.maybe_user_edit:
        # Perhaps the user's own: it stays, and what came before it is taken back around it.
        ours = base
    merged = await run_in_thread(partial(merge, base, ours, theirs))
    if merged.conflicts:
        return RevertConflict(f"{name} was changed since in the same lines")
    state[change.path] = None
    state[change.source or change.path] = merged.text
    return None


def _in_the_way(change: Change, state: Mapping[Path, TargetState]) -> str | None:
    if change.before is None:
        return "was made here and changed since; it stays"
    if change.after is None:
        return "was deleted here, and another file has its name now"
    if state[change.path] is None:
        return "was deleted since"
    if change.source is not None and state[change.source] is not None:
        return f"was called {change.source.name}, and another file has that name now"
    return None


async def _text(goal: TargetState, text_of: TextOf) -> str | None:
    return await text_of(goal) if isinstance(goal, FileVersion) else goal


def _is_exact(change: Change, state: Mapping[Path, TargetState]) -> bool:
    return all(
        not isinstance(there := state[path], str) and same_version(there, version)
        for path, version in ends_of(change).items()
    )


_TOKENS: Final = re.compile(r"[A-Za-z0-9_]{3,}|[^\x00-\x7f]")
"""Words of some length, and each character of scripts that put no blanks between words."""


class Anchor(Value, frozen=True, kw_only=True):
    """Files that are left as they are."""

    names: str
    taken: frozenset[str]
    """Words that they held once and do not hold now."""


class Candidate(Value, frozen=True, kw_only=True):
    """Files that would be taken back."""

    key: int
    names: str
    held: frozenset[str]
    """Words that they have held meanwhile and do not hold now."""
    lost: frozenset[str]
    """Words that they hold now and would not hold then."""


def tokens_of(text: str) -> frozenset[str]:
    """Return the words of a text, however they are written."""
    return frozenset(found[0].casefold() for found in _TOKENS.finditer(text))


def files_with_moved_text(
    going: Iterable[Candidate], staying: Iterable[Anchor]
) -> Iterator[tuple[int, str]]:
    """Yield the key of each file that must stay too, with the reason. Such a file can cause further files to stay."""
    left, anchors = list(going), list(staying)
    while anchors:
        anchor = anchors.pop()
        for one in [one for one in left if one.lost & anchor.taken]:
            left.remove(one)
            yield (
                one.key,
                f"{one.names} may hold what was moved there from {anchor.names}, which stays",
            )
            anchors.append(Anchor(names=one.names, taken=one.held))


class MovedTextFinder:
    """Compares the words of files, those of today and those of then."""

    def __init__(
        self,
        read: Callable[[Path], Awaitable[FileText | FileBytes | None]],
        text: Callable[[FileVersion], Awaitable[str | None]],
    ) -> None:
        self._read = read
        self._text = text

    async def holders(
        self,
        going: Iterable[tuple[int, RestoreGroup, Mapping[Path, TargetState]]],
        staying: Sequence[RestoreGroup],
    ) -> Mapping[int, str]:
        """Return those that must stay too, by their number, with the reason.

        Args:
            going: Would be taken back, with what they would hold.
            staying: Are left as they are.
        """
        found = [
            Candidate(
                key=at,
                names=names_of(group),
                held=await self._taken(group),
                lost=await self._now(group) - await self._of(_there(goals)),
            )
            for at, group, goals in going
        ]
        anchors = [Anchor(names=names_of(one), taken=await self._taken(one)) for one in staying]
        return dict(files_with_moved_text(found, anchors))

    async def _taken(self, group: RestoreGroup) -> frozenset[str]:
        versions = [one.before for one in group.changes if one.before is not None]
        return await self._of(versions) - await self._now(group)

    async def _now(self, group: RestoreGroup) -> frozenset[str]:
        fragments: frozenset[str] = frozenset()
        for path in group.paths:
            with suppress(WorkspaceError):
                found = await self._read(path)
                if isinstance(found, FileText):
                    fragments |= await run_in_thread(tokens_of, found.text)
        return fragments

    async def _of(self, goals: Iterable[FileVersion | str]) -> frozenset[str]:
        fragments: frozenset[str] = frozenset()
        for goal in goals:
            text = goal if isinstance(goal, str) else await self._text(goal)
            if text is not None:
                fragments |= await run_in_thread(tokens_of, text)
        return fragments


def names_of(group: RestoreGroup) -> str:
    """Name the files of a group for people."""
    return ", ".join(path.name for path in group.paths)


def _there(goals: Mapping[Path, TargetState]) -> Sequence[FileVersion | str]:
    return [one for one in goals.values() if one is not None]
