"""The files of a workspace as one tool call may change them: the last check, whatever the call said it would do."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from agent_core.kernel.errors import PathRefused
from agent_core.workspace import (
    FileBytes,
    Files,
    FileText,
    Heard,
    Write,
    Written,
)
from agent_core.workspace.policy import Situation
from agent_core.workspace.protected import is_protected
from agent_core.workspace.reading import ReadsPass


class GuardedFiles(ReadsPass):
    """Refuses changes of protected files that nobody agreed to, and all changes while only reading is allowed.

    The gate judges what a call says before it runs. Between that and the write a link may come to mean another file,
    and a tool of somebody else may write where its arguments do not say.
    """

    def __init__(
        self,
        files: Files,
        *,
        situation: Callable[[], Situation],
        approved: Callable[[], Collection[Path]],
    ) -> None:
        super().__init__(files)
        self._situation = situation
        self._approved = approved

    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        """Write, if that may be changed.

        Raises:
            PathRefused: It may not; nothing was written.
        """
        self._check(path)
        return await self._files.write(path, text, base=base)

    async def write_all(self, writes: Sequence[Write], *, heard: Heard) -> None:
        """Write those that may be changed; of each other one that is heard."""
        agreed: list[Write] = []
        for one in writes:
            try:
                self._check(one.path)
            except PathRefused as error:
                await heard(one, error)
            else:
                agreed.append(one)
        await self._files.write_all(agreed, heard=heard)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete, if that may be changed.

        Raises:
            PathRefused: It may not; the file is there.
        """
        self._check(path)
        await self._files.delete(path, base=base)

    async def move(self, source: Path, target: Path) -> None:
        """Move, if both ends may be changed.

        Raises:
            PathRefused: One of them may not; nothing was moved.
        """
        self._check(source)
        self._check(target)
        await self._files.move(source, target)

    def _check(self, path: Path) -> None:
        situation = self._situation()
        if not situation.trusted or situation.mode == "plan":
            why = "in plan mode" if situation.trusted else "before the workspace is trusted"
            message = f"{path} was not changed: {why} nothing may be. Describe the change instead."
            raise PathRefused(message)
        why = is_protected(path, roots=situation.roots)
        if why is not None and path not in self._approved():
            message = (
                f"{path} was not changed: {why}, so the user must agree first, and was not asked about this file. "
                "Use the tool `write` or `edit` on it, which asks."
            )
            raise PathRefused(message)
