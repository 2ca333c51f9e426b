"""Target contents of a group of files that is reverted while edits of the user are kept."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from agent_core.changes.revert.plan import (
    CurrentVersions,
    RestoreGroup,
    begins_of,
    ends_of,
    not_undone,
)
from agent_core.changes.values import Change, FileVersion
from agent_core.changes.versions import same_version
from agent_core.kernel.values import Value
from agent_core.workspace.diff.merge import merge

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
    merged = await to_thread.run_sync(partial(merge, base, ours, theirs))
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
