"""The files of a workspace as one tool call may change them: the last check, whatever the call said it would do."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from typing_extensions import override

from agent_core.kernel.errors import PathRefused
from agent_core.kernel.threads import run_in_thread
from agent_core.session.permissions.broker import JudgedPath
from agent_core.workspace import (
    FileBytes,
    Files,
    FileText,
    FileWrite,
    OnResult,
    WriteResult,
)
from agent_core.workspace.files.proxy import FilesProxy
from agent_core.workspace.permissions.call_permission import SecretAccess
from agent_core.workspace.permissions.policy import PolicyContext
from agent_core.workspace.permissions.protected_links import protected_by_link
from agent_core.workspace.permissions.protected_names import is_protected
from agent_core.workspace.port import READ_LIMIT_BYTES, FileReader, PathAccess


class GuardedFiles(FilesProxy):
    """Refuses changes of protected files that nobody agreed to, and all changes while only reading is allowed.

    The contents of secret files are refused too, until a person let the session read them.

    The gate judges what a call says before it runs. Between that and the write a link may come to mean another file,
    and a tool of somebody else may write where its arguments do not say.
    """

    def __init__(
        self,
        files: Files,
        *,
        situation: Callable[[], PolicyContext],
        approved: Callable[[], Collection[Path]],
        secrets: SecretAccess,
        judged: JudgedPath | None = None,
    ) -> None:
        super().__init__(files)
        self._judged = judged
        self._secrets = secrets
        self._situation = situation
        self._approved = approved

    @override
    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Return the path that was judged if this is it, without a look at what it means now."""
        judged = self._judged
        if judged is not None and (judged.path, judged.access) == (path, access):
            return judged.found
        return await self._files.resolve(path, access)

    @override
    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        self._check_content(path)
        return await self._files.read(path, limit_bytes=limit_bytes)

    @override
    def open(self, path: Path) -> AbstractAsyncContextManager[FileReader]:
        self._check_content(path)
        return self._files.open(path)

    @override
    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        return tuple(
            text for text in await self._files.buffers(folder) if self._withheld(text.path) is None
        )

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write, if that may be changed.

        Raises:
            PathRefused: It may not; nothing was written.
        """
        await self._check(path)
        return await self._files.write(path, text, base=base)

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write those that may be changed; of each other one that is heard."""
        agreed: list[FileWrite] = []
        for one in writes:
            try:
                await self._check(one.path)
            except PathRefused as error:
                await on_result(one, error)
            else:
                agreed.append(one)
        await self._files.write_all(agreed, on_result=on_result)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete, if that may be changed.

        Raises:
            PathRefused: It may not; the file is there.
        """
        await self._check(path)
        await self._files.delete(path, base=base)

    async def move(self, source: Path, target: Path) -> None:
        """Move, if both ends may be changed.

        Raises:
            PathRefused: One of them may not; nothing was moved.
        """
        await self._check(source)
        await self._check(target)
        await self._files.move(source, target)

    def _withheld(self, path: Path) -> str | None:
        if path in self._approved():
            return None
        return self._secrets.withholds(path, roots=self._situation().roots)

    def _check_content(self, path: Path) -> None:
        why = self._withheld(path)
        if why is not None:
            message = f"{path} was not read: {why}, so the user must agree first. Use the tool `read` on it, which asks."
            raise PathRefused(message)

    async def _check(self, path: Path) -> None:
        situation = self._situation()
        if not situation.trusted or situation.mode == "plan":
            why = "in plan mode" if situation.trusted else "before the workspace is trusted"
            message = f"{path} was not changed: {why} nothing may be. Describe the change instead."
            raise PathRefused(message)
        if path in self._approved():
            return
        look = partial(protected_by_link, path, roots=situation.roots)
        why = is_protected(path, roots=situation.roots) or await run_in_thread(look)
        if why is not None:
            message = (
                f"{path} was not changed: {why}, so the user must agree first, and was not asked about this file. "
                "Use the tool `write` or `edit` on it, which asks."
            )
            raise PathRefused(message)
