"""Makes files hold what they are to hold: text through the workspace, anything else byte for byte."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from agent_core.changes import BlobStore, FileVersion
from agent_core.changes.ports.byte_files import ByteFiles
from agent_core.changes.revert.targets import TargetState
from agent_core.changes.versions import keep, text_of
from agent_core.kernel.errors import AccessRefused, FileMissing, NotText
from agent_core.kernel.shield import uncancelled
from agent_core.workspace import FileBytes, Files, FileText, FileWrite

PresentFiles: TypeAlias = Mapping[Path, FileText | FileBytes | None]
"""Content of files by path; None: the file does not exist."""


class FileRestorer:
    """Changes files to what they held once, or to a text."""

    def __init__(
        self,
        files: Files,
        raw: ByteFiles | None,
        contents: BlobStore,
        *,
        wrote: Callable[[Path, FileVersion | None, FileVersion], Awaitable[None]],
    ) -> None:
        """Create the writer.

        Args:
            files: Files of the workspace; changes through them are recorded.
            raw: Writes bytes; None: content that is not UTF-8 text stays as it is.
            contents: Store of older versions.
            wrote: Records a change that was made through `raw`.
        """
        self._files = files
        self._raw = raw
        self._contents = contents
        self._wrote = wrote

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
            await self._put(path, goals[path], found[path])
            done.append(path)

    async def _check_kept(self, path: Path, found: FileText | FileBytes | None) -> None:
        """Refuse to change what could not be brought back."""
        if found is not None and (await keep(found, self._contents)).content is None:
            message = f"{path.name} is too large to be kept as it is now, so it was left alone"
            raise AccessRefused(message)

    async def _put(self, path: Path, goal: TargetState, found: FileText | FileBytes | None) -> None:
        if goal is None:
            if found is not None:
                await self._files.delete(path, base=found)
            return
        text = goal if isinstance(goal, str) else await self.text(goal)
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

    async def text(self, version: FileVersion) -> str | None:
        """Return the text of a version; None: it is none, or was not kept."""
        if version.content is None or not version.is_text:
            return None
        data = await self._contents.get(version.content)
        return None if data is None else text_of(version, data)


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


def _fits(goal: TargetState, found: FileText | FileBytes | None) -> bool:
    """Return whether writing the text writes the bytes as they were: encoding and mark are those of what is there."""
    if isinstance(found, FileBytes):
        return False
    encoding, bom = ("utf-8", False) if found is None else (found.encoding, found.bom)
    return not isinstance(goal, FileVersion) or (goal.encoding, goal.bom) == (encoding, bom)
