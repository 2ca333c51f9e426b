"""Reverts files: text through the workspace and its editors, anything else byte for byte."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from agent_core.changes import BlobStore, FileVersion
from agent_core.changes.ports import ByteFiles
from agent_core.changes.revert import TargetState
from agent_core.changes.values import keep, stored_bytes, stored_text
from agent_core.kernel.errors import AccessRefused, FileMissing, NotText, WorkspaceError
from agent_core.kernel.threads import uncancelled
from agent_core.workspace import FileBytes, Files, FileText, FileWrite, WriteResult

PresentFiles: TypeAlias = Mapping[Path, FileText | FileBytes | None]
"""Content of files by path; None: the file does not exist."""


class FileReverter:
    """Changes files to an earlier version, to a text or to bytes, for restores and for rejections alike."""

    def __init__(
        self,
        files: Files,
        raw: ByteFiles | None,
        contents: BlobStore,
        *,
        recorded: Callable[[Path, FileVersion | None, FileVersion | None], Awaitable[None]],
    ) -> None:
        """Create the writer.

        Args:
            files: Files of the workspace; changes through them are recorded.
            raw: Writes bytes; None: content that is not UTF-8 text stays as it is.
            contents: Store of older versions.
            recorded: Records a change that was made through `raw`. Gets the path, the version before and the version
                after; None as the last: the bytes are those of no stored version.
        """
        self._files = files
        self._raw = raw
        self._contents = contents
        self._recorded = recorded

    async def writes(
        self, goals: Mapping[Path, TargetState], found: PresentFiles
    ) -> Sequence[FileWrite]:
        """Return the writes that make files hold what they are to; none where texts of open documents are not all of it.

        Raises:
            WorkspaceError: Something of it could not be brought back.
        """
        if not is_open_text(goals, found):
            return ()
        writes: list[FileWrite] = []
        for path, goal in goals.items():
            await self._check_kept(path, found[path])
            base = found[path]
            text = await self.text(goal) if isinstance(goal, FileVersion) else goal
            if text is None or not isinstance(base, FileText) or base.text == text:
                return ()
            writes.append(FileWrite(path=path, text=text, base=base))
        return writes

    async def restore(
        self, goals: Mapping[Path, TargetState], seen: PresentFiles, done: list[Path]
    ) -> None:
        """Make files hold what they are to; whatever stops it, `done` names those that do.

        Raises:
            WorkspaceError: A file cannot be changed, or could not be brought back; those after it are as they were.
        """
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
            await self.put(path, goals[path], found[path])
            done.append(path)

    async def _check_kept(self, path: Path, found: FileText | FileBytes | None) -> None:
        """Refuse to change what could not be brought back."""
        if found is not None and (await keep(found, self._contents)).content is None:
            message = f"{path.name} is too large to be kept as it is now, so it was left alone"
            raise AccessRefused(message)

    async def put(
        self, path: Path, goal: TargetState | bytes, found: FileText | FileBytes | None
    ) -> None:
        """Make one file hold what it is to.

        Raises:
            WorkspaceError: It cannot be changed; it is as it was.
        """
        if goal is None:
            if found is not None:
                await self._files.delete(path, base=found)
            return
        text = await self.text(goal) if isinstance(goal, FileVersion) else goal
        if isinstance(text, str) and _fits(goal, found):
            base = found if isinstance(found, FileText) else None
            if base is None or base.text != text:
                _ = await self._files.write(path, text, base=base)
            return
        if isinstance(goal, str):
            message = f"{path.name} is no text any more, so nothing can be merged into it"
            raise NotText(message)
        await self._put_bytes(path, goal, found)

    async def _put_bytes(
        self, path: Path, goal: FileVersion | bytes, found: FileText | FileBytes | None
    ) -> None:
        raw = self._raw
        if raw is None or (isinstance(found, FileText) and found.source == "buffer"):
            message = (
                f"{path.name} was in another encoding or no text, which cannot be put back here"
            )
            raise AccessRefused(message)
        data = goal if isinstance(goal, bytes) else await self._bytes(path, goal)
        after = None if isinstance(goal, bytes) else goal
        before = None if found is None else await keep(found, self._contents)

        async def put() -> None:
            await raw.put_bytes(path, data, base=found)
            await self._recorded(path, before, after)

        await uncancelled(put())

    async def _bytes(self, path: Path, version: FileVersion) -> bytes:
        data = await stored_bytes(version, self._contents)
        if data is None:
            message = f"what {path.name} held before is damaged or gone from where it was kept"
            raise FileMissing(message)
        return data

    async def text(self, version: FileVersion) -> str | None:
        """Return the text of a version; None: it is none, or was not kept."""
        return await stored_text(version, self._contents)


async def write_together(
    files: Files, writes: Sequence[FileWrite], done: list[Path]
) -> Mapping[Path, WorkspaceError | None]:
    """Write open documents in one edit; return, per path tried, why it was not written, or None.

    Args:
        files: Files of the workspace.
        writes: The writes.
        done: Receives each written path at once, so that the caller has them after a cancellation.
    """
    ends: dict[Path, WorkspaceError | None] = {}

    async def on_result(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        ends[one.path] = outcome if isinstance(outcome, WorkspaceError) else None
        if ends[one.path] is None:
            done.append(one.path)

    await files.write_all(writes, on_result=on_result)
    return ends


def is_open_text(goals: Mapping[Path, TargetState], found: PresentFiles) -> bool:
    """Return whether nothing but texts of open documents is to change."""
    return all(
        isinstance(there := found[path], FileText)
        and there.source == "buffer"
        and (isinstance(goal, str) or (goal is not None and goal.is_text))
        and _fits(goal, there)
        for path, goal in goals.items()
    )


def _moved_back(goals: Mapping[Path, TargetState], found: PresentFiles) -> tuple[Path, Path] | None:
    """Return from where to where a file goes back to its old name: it keeps what a copy would not, its rights for one."""
    gone = [path for path, goal in goals.items() if goal is None]
    come = [path for path, goal in goals.items() if goal is not None and found[path] is None]
    if len(gone) == 1 and len(come) == 1 and found[gone[0]] is not None:
        return gone[0], come[0]
    return None


def _fits(goal: TargetState | bytes, found: FileText | FileBytes | None) -> bool:
    """Return whether writing the text writes the bytes as they were: encoding and mark are those of what is there."""
    if isinstance(found, FileBytes):
        return False
    encoding, bom = ("utf-8", False) if found is None else (found.encoding, found.bom)
    return not isinstance(goal, FileVersion) or (goal.encoding, goal.bom) == (encoding, bom)
