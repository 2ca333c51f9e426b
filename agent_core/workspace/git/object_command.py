"""Git that reads objects for the record of changes. The port of processes starts it, contained where that is possible."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from anyio import to_thread

from agent_core.workspace.git.command import GitCommand, find_git, git_command, git_environment
from agent_core.workspace.git.repository import RepositoryUnusable, find_repository


async def object_command(
    folder: Path, *arguments: str, env: Mapping[str, str], roots: Sequence[Path]
) -> GitCommand | None:
    """Return how git is started in the repository around a folder; None without a usable repository or git.

    Inside of containment there is no place for a shadow, so git reads the repository's configuration here: only for
    commands that read objects and start no program, whatever it says.

    Args:
        folder: Somewhere in the work tree.
        arguments: The command of git, with its own arguments.
        env: The environment of the user.
        roots: The folders of the workspace; no program of these is started.
    """
    return await to_thread.run_sync(lambda: _command(folder, arguments, env, (folder, *roots)))


def _command(
    folder: Path, arguments: Sequence[str], env: Mapping[str, str], roots: Sequence[Path]
) -> GitCommand | None:
    try:
        repository = find_repository(folder, env)
    except (OSError, RepositoryUnusable):
        return None
    closed = (*roots, repository.root)
    program = find_git(env, roots=closed)
    if program is None:
        return None
    return git_command(
        program,
        *arguments,
        environment=git_environment(env, roots=closed),
        GIT_DIR=str(repository.git_dir),
        GIT_COMMON_DIR=str(repository.common_dir),
        GIT_WORK_TREE=str(repository.root),
    )
