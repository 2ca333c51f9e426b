"""Takes rejected hunks out of files again: the reverse edit, through the editor when it has the file open."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_core.changes.following import FileNow
from agent_core.changes.hunks import taken_back
from agent_core.changes.verdicts import Verdict
from agent_core.kernel.errors import StaleText, WorkspaceError
from agent_core.session.changes import Author, RecordedFiles
from agent_core.workspace import FileBytes, FileText

TRIES: Final = 3
"""How often it is tried again when somebody changes the file meanwhile."""

Look = Callable[[Path], Awaitable[FileText | FileBytes | None]]


class TakingBack:
    """Writes files without what was rejected. What the user has typed stays."""

    def __init__(
        self,
        files: Callable[[Author], RecordedFiles],
        *,
        at: Callable[[Path, str | None], Awaitable[FileNow | None]],
        new_id: Callable[[], str],
    ) -> None:
        """Begin.

        Args:
            files: Those of the workspace, their changes kept and told.
            at: Gives a file as it is while it holds a text.
            new_id: For the edits.
        """
        self._files = files
        self._at = at
        self._new_id = new_id

    async def take(self, now: FileNow, verdict: Verdict, look: Look) -> str | None:
        """Take hunks out of a file, or the file itself away; gives why that could not be done."""
        verdict = replace(verdict, edit=self._new_id())
        trouble: str | None = None
        for _ in range(TRIES):
            found = await look(now.path)
            try:
                return await self._taken(now, verdict, found)
            except StaleText as error:
                trouble = str(error)
            except WorkspaceError as error:
                return str(error)
            again = await look(now.path)
            moved = await self._at(now.path, again.text if isinstance(again, FileText) else None)
            waiting = {one.id for one in moved.hunks if one.is_pending} if moved else set[str]()
            if moved is None or not waiting.issuperset(verdict.hunks):
                return trouble
            now = moved
        return trouble

    async def _taken(
        self, now: FileNow, verdict: Verdict, found: FileText | FileBytes | None
    ) -> str | None:
        assert verdict.edit is not None  # noqa: S101 - given in `take`
        files = self._files(Author(edit=verdict.edit, by="reject", verdict=verdict))
        if found is None:
            return await self._brought_back(now, verdict, files)
        if isinstance(found, FileText) and now.text is not None and found.text != now.text:
            message = f"{now.path} has changed meanwhile"
            raise StaleText(message)
        if not isinstance(found, FileText) or now.text is None:
            if verdict.whole and not verdict.hunks and now.op == "move" and now.origin is not None:
                await files.move(now.path, now.origin)
                return None
            return f"{now.path} is no text that could be taken back piece by piece"
        text, _ = taken_back(now.text, now.hunks, verdict.hunks)
        if verdict.whole and now.op == "add" and not text:
            await files.delete(now.path, base=found)
            return None
        if verdict.hunks:
            _ = await files.write(now.path, text, base=found)
        if verdict.whole and now.op == "move" and now.origin is not None:
            await files.move(now.path, now.origin)
        return None

    async def _brought_back(
        self, now: FileNow, verdict: Verdict, files: RecordedFiles
    ) -> str | None:
        """Write a file again that the agent deleted."""
        first = now.first
        if now.op != "delete" or first is None or now.text is None:
            return f"{now.path} is not there any more"
        if first.encoding != "utf-8" or first.bom:
            return f"{now.path} had the encoding {first.encoding}; restore the checkpoint before it instead"
        text, _ = taken_back(now.text, now.hunks, verdict.hunks)
        _ = await files.write(now.origin or now.path, text, base=None)
        return None
