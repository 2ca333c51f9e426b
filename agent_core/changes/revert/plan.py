"""Plan for restoring files to a checkpoint; pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from pathlib import Path
from typing import Final, Literal

from agent_core.changes.values import Change, FileVersion
from agent_core.changes.versions import MOST_BYTES, same_version
from agent_core.kernel.values import Value

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
