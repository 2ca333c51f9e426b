"""Asks Git about a repository of which nothing is believed: not its configuration, and no program that lies in it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import ByteReceiveStream
from msgspec.structs import replace

from agent_core.kernel.errors import TillerError
from agent_core.kernel.text import one_line
from agent_core.kernel.threads import uncancelled
from agent_core.kernel.values import Value
from agent_core.workspace.git.command import (
    USER_SETTINGS,
    GitCommand,
    find_git,
    git_command,
    git_environment,
    user_settings_command,
)
from agent_core.workspace.git.repository import GitRepository, RepositoryUnusable, find_repository
from agent_core.workspace.git.shadow import ShadowRepository, write_shadow

ERROR_CHARS: Final = 400
PARTIAL_CLONE: Final = "extensions.partialclone"
PARTIAL: Final = "; this is a partial clone, and what it lacks is not fetched: use a clone that was made without --filter"


class GitFailed(TillerError):
    """Git could not do what was asked."""


class GitAnswer(Value, frozen=True, kw_only=True):
    """Exit code and output of a Git command."""

    code: int
    output: bytes
    errors: str
    """On one line."""


class Git(Value, frozen=True, kw_only=True):
    """Git with the shadow of a repository; see `agent_core.workspace.git.shadow`."""

    program: str
    shadow: ShadowRepository
    environment: Mapping[str, str]
    """As `git_environment` made it."""
    folder: Path
    """Where it runs."""
    extra: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables for Git itself, as `GIT_INDEX_FILE`."""

    @property
    def repository(self) -> GitRepository:
        """The repository that is looked at."""
        return self.shadow.repository

    def knowing(self, **variables: str) -> "Git":
        """Return the same with more variables."""
        return replace(self, extra={**self.extra, **variables})

    def at(self, folder: Path) -> "Git":
        """Return the same with another folder as the work tree."""
        return replace(self.knowing(GIT_WORK_TREE=str(folder)), folder=folder)

    def of(self, repository: GitRepository) -> "Git":
        """Return the same for commands in the place of another worktree of the repository."""
        return replace(self, shadow=replace(self.shadow, repository=repository))

    def storing(self) -> "Git":
        """Return the same, writing objects into the repository itself."""
        return self.knowing(GIT_OBJECT_DIRECTORY=str(self.repository.common_dir / "objects"))

    async def ask(self, *arguments: str, stdin: bytes = b"") -> GitAnswer:
        """Run a command of Git and return all that it said, whatever its exit code.

        Raises:
            RepositoryUnusable: It cannot be started there.
        """
        variables = {**self.shadow.variables, **self.extra}
        command = git_command(self.program, *arguments, environment=self.environment, **variables)
        return await run_command(command, self.folder, stdin=stdin)

    async def ask_in_place(self, *arguments: str) -> GitAnswer:
        """Run a command on the repository itself, for what a shadow cannot change: its refs and its worktrees.

        Git reads the repository's configuration then: only for commands that start no program, whatever it says.

        Raises:
            RepositoryUnusable: It cannot be started there.
        """
        there = {
            "GIT_DIR": str(self.repository.git_dir),
            "GIT_COMMON_DIR": str(self.repository.common_dir),
            "GIT_WORK_TREE": str(self.repository.root),
        }
        command = git_command(self.program, *arguments, environment=self.environment, **there)
        return await run_command(command, self.repository.common_dir)

    async def output(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command that must succeed.

        Raises:
            GitFailed: It did not; the text has Git's own words.
        """
        answer = await self.ask(*arguments, stdin=stdin)
        if answer.code:
            what = " ".join(arguments[:2])
            partial = PARTIAL if PARTIAL_CLONE in self.repository.values else ""
            message = f"git {what} failed with exit code {answer.code}: {answer.errors}{partial}"
            raise GitFailed(message)
        return answer.output

    async def text(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its output as one text without the last line feed."""
        return os.fsdecode(await self.output(*arguments)).removesuffix("\n")


async def find_root(folder: Path, env: Mapping[str, str]) -> Path:
    """Return the top folder of the repository around a folder. Starts no Git.

    Raises:
        RepositoryUnusable: There is none, or it cannot be read safely.
    """
    return (await _find(folder, env)).root


async def open_git(
    folder: Path, *, env: Mapping[str, str], scratch: Path, roots: Sequence[Path] = ()
) -> Git:
    """Return Git for the repository around a folder, at its top.

    Args:
        folder: Somewhere in the work tree.
        env: The environment of the user.
        scratch: A private folder that lives as long as what is returned.
        roots: More folders in which no program is started.

    Raises:
        RepositoryUnusable: There is none, or it cannot be read safely; or there is no Git outside of the workspace.
    """
    repository = await _find(folder, env)
    return await open_repository(repository, env=env, scratch=scratch, roots=(folder, *roots))


async def open_repository(
    repository: GitRepository, *, env: Mapping[str, str], scratch: Path, roots: Sequence[Path] = ()
) -> Git:
    """Return Git for a repository, at its top.

    Args:
        repository: As `find_repository` returned it.
        env: The environment of the user.
        scratch: A private folder that lives as long as what is returned.
        roots: More folders in which no program is started.

    Raises:
        RepositoryUnusable: It cannot be read safely; or there is no Git outside of the workspace.
    """
    closed = (repository.root, *roots)
    program = await anyio.to_thread.run_sync(lambda: find_git(env, roots=closed))
    if program is None:
        message = f"git was not found on the PATH outside of {', '.join(sorted({str(one) for one in closed}))}; it is needed, and none that lies in a workspace is started: install it with your package manager"
        raise RepositoryUnusable(message)
    environment = await anyio.to_thread.run_sync(lambda: git_environment(env, roots=closed))
    chosen = await _user_settings(program, env, environment)
    try:
        shadow = await anyio.to_thread.run_sync(
            lambda: write_shadow(repository, scratch / "git", chosen=chosen)
        )
    except OSError as error:
        message = f"the repository {str(repository.root)!r} cannot be read ({error})"
        raise RepositoryUnusable(message) from error
    return Git(program=program, shadow=shadow, environment=environment, folder=repository.root)


@asynccontextmanager
async def scratch_folder() -> AsyncGenerator[Path]:
    """Create a private temporary folder, which is removed with the context."""
    path = Path(await anyio.to_thread.run_sync(tempfile.mkdtemp, None, "tiller-git-"))
    try:
        yield path
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(path, ignore_errors=True))


@asynccontextmanager
async def opened_git(folder: Path, *, env: Mapping[str, str]) -> AsyncGenerator[Git]:
    """Open Git as `open_git` does, with a private folder of its own.

    Raises:
        RepositoryUnusable: As there.
    """
    async with scratch_folder() as scratch:
        yield await open_git(folder, env=env, scratch=scratch)


async def _find(folder: Path, env: Mapping[str, str]) -> GitRepository:
    try:
        return await anyio.to_thread.run_sync(find_repository, folder, env)
    except OSError as error:
        message = f"{str(folder)!r} cannot be looked at ({error.strerror})"
        raise RepositoryUnusable(message) from error


async def _user_settings(
    program: str, env: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    command = user_settings_command(program, env=env, environment=environment)
    answer = await run_command(command, Path("/"))
    rows = (os.fsdecode(row).partition("\n") for row in answer.output.split(b"\0") if row)
    return {name: value for name, _, value in rows if name in USER_SETTINGS and "\n" not in value}


async def run_command(command: GitCommand, folder: Path, *, stdin: bytes = b"") -> GitAnswer:
    """Run a command of Git and return all that it said, whatever its exit code.

    Raises:
        RepositoryUnusable: It cannot be started there.
    """
    try:
        # A start that is cancelled half way leaves a process that nobody waits for.
        process = await uncancelled(
            anyio.open_process(
                command.argv,
                # Without a pipe git would read what is meant for this process.
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                cwd=folder,
                env=command.env,
            )
        )
    except OSError as error:
        message = f"git cannot be started in {str(folder)!r} ({error.strerror})"
        raise RepositoryUnusable(message) from error
    output, errors = bytearray(), bytearray()
    async with process:
        async with anyio.create_task_group() as group:
            group.start_soon(_collect, process.stdout, output)
            group.start_soon(_collect, process.stderr, errors)
            if process.stdin is not None:
                # Its exit code says why it has ended before it has read everything.
                with suppress(anyio.BrokenResourceError):
                    await process.stdin.send(stdin)
                await process.stdin.aclose()
        code = await process.wait()
    shown = one_line(errors.decode("utf-8", "replace"))[:ERROR_CHARS]
    return GitAnswer(code=code, output=bytes(output), errors=shown)


async def _collect(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for chunk in stream:
            into += chunk
