"""The history of the memory folder, in a git repository of its own."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel.errors import UsageError
from agent_core.kernel.private_file import FILE_MODE
from agent_core.workspace.git.client import GitAnswer, run_command
from agent_core.workspace.git.command import find_git, git_command, git_environment
from agent_core.workspace.git.repository import RepositoryUnusable

log = logging.getLogger(__name__)

IDENTITY: Final[Mapping[str, str]] = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Tiller"), ("EMAIL", "tiller@localhost"))
}
IGNORED: Final = "*.lock\n*.sqlite3*\n*.json\n.*.*.*\n"
COMMIT_S: Final = 10.0
USED: Final = "Record use"
"""Subject of a change of the days of use, which `undo` leaves alone."""
NO_GIT: Final = "the history of the memory needs git, and none was found on the PATH"


class MemoryHistory:
    """Commits each change of the folder. Without git, or when it fails, changes are stored without a history."""

    def __init__(self, folder: Path, *, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = env

    async def record(self, subject: str) -> None:
        """Commit what has changed. Never raises for a reason of git."""
        with anyio.move_on_after(COMMIT_S, shield=True) as limit:
            try:
                await self._commit(subject)
            except (RepositoryUnusable, OSError) as error:
                log.warning("memory has no history of this change: %s", error)
        if limit.cancelled_caught:
            log.warning("memory has no history of this change: git took more than %g s", COMMIT_S)

    async def undo(self) -> str | None:
        """Revert the last change; return its subject, None if there is none.

        Raises:
            UsageError: There is no git, or it cannot take the change back.
        """
        if await self._program() is None:
            raise UsageError(NO_GIT)
        await self._commit("Changes by hand")
        log_lines = os.fsdecode((await self._git("log", "--format=%H %s")).output).splitlines()
        changes = (line.partition(" ") for line in log_lines)
        last = next(((commit, subject) for commit, _, subject in changes if subject != USED), None)
        if last is None:
            return None
        answer = await self._git("revert", "--no-edit", last[0])
        await anyio.to_thread.run_sync(self._protect)
        if answer.code:
            _ = await self._git("revert", "--abort")
            message = f"the last change of the memory cannot be taken back: {answer.errors}"
            raise UsageError(message)
        return last[1]

    def _protect(self) -> None:
        """Make the files that git wrote the user's alone. Blocking."""
        for path in self._folder.rglob("*.md"):
            path.chmod(FILE_MODE)

    async def _commit(self, subject: str) -> None:
        if await self._program() is None:
            return
        if not await anyio.Path(self._folder / ".git").is_dir():
            _ = await self._git("init", "--quiet", "--initial-branch=memory", ".")
            exclude = anyio.Path(self._folder / ".git" / "info" / "exclude")
            await exclude.parent.mkdir(exist_ok=True)
            _ = await exclude.write_text(IGNORED, encoding="utf-8")
        _ = await self._git("add", "--all", "--", ".")
        if (await self._git("diff", "--cached", "--quiet")).code:
            answer = await self._git("commit", "--quiet", "--no-verify", "-m", subject)
            if answer.code:
                log.warning("memory has no history of this change: %s", answer.errors)

    async def _program(self) -> str | None:
        return await anyio.to_thread.run_sync(lambda: find_git(self._env, roots=(self._folder,)))

    async def _git(self, *arguments: str) -> GitAnswer:
        program = await self._program()
        if program is None:
            raise RepositoryUnusable(NO_GIT)
        environment = await anyio.to_thread.run_sync(
            lambda: git_environment(self._env, roots=(self._folder,))
        )
        command = git_command(
            program,
            *arguments,
            environment=environment,
            GIT_DIR=str(self._folder / ".git"),
            GIT_WORK_TREE=str(self._folder),
            **IDENTITY,
        )
        return await run_command(command, self._folder)
