"""Looks whether files that would be taken back hold what came from files that stay."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from agent_core.changes import FileVersion
from agent_core.changes.revert.moved_text import Anchor, Candidate, files_with_moved_text, tokens_of
from agent_core.changes.revert.plan import RestoreGroup
from agent_core.changes.revert.targets import TargetState
from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import FileBytes, FileText


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
                    fragments |= await to_thread.run_sync(tokens_of, found.text)
        return fragments

    async def _of(self, goals: Iterable[FileVersion | str]) -> frozenset[str]:
        fragments: frozenset[str] = frozenset()
        for goal in goals:
            text = goal if isinstance(goal, str) else await self._text(goal)
            if text is not None:
                fragments |= await to_thread.run_sync(tokens_of, text)
        return fragments


def names_of(group: RestoreGroup) -> str:
    """Name the files of a group for people."""
    return ", ".join(path.name for path in group.paths)


def _there(goals: Mapping[Path, TargetState]) -> Sequence[FileVersion | str]:
    return [one for one in goals.values() if one is not None]
