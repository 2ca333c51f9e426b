"""Repositories of tasks: made from a folder or a bundle, always with the same commits, and nothing after the base."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from agent_core.workspace.git.command import find_git, git_command, git_environment
from tiller_server.evaluation.errors import EvaluationImpossible
from tiller_server.evaluation.tasks.task import BUNDLE, CHANGE, TREE, LoadedTask

BRANCH: Final = "main"
IDENTITY: Final[Mapping[str, str]] = {
    "GIT_AUTHOR_NAME": "Evaluation",
    "GIT_AUTHOR_EMAIL": "evaluation@localhost",
    "GIT_COMMITTER_NAME": "Evaluation",
    "GIT_COMMITTER_EMAIL": "evaluation@localhost",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00+0000",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00+0000",
}
"""The same at every time and place, so that a folder always becomes the same commit."""
NOT_COUNTED: Final = ("__pycache__/", "*.pyc", ".pytest_cache/", "node_modules/")
"""Files that tests leave behind are no change of the agent."""
ERROR_CHARS: Final = 300


class GitCommandFailed(Exception):
    """A command of git failed; the text is its own."""


class TaskRepository(Value, frozen=True, kw_only=True):
    """A repository with the base checked out on the branch `main`, or the head of a review."""

    folder: Path
    base: str
    head: str
    """The commit that is checked out."""


class CountedChange(Value, frozen=True, kw_only=True):
    """A file that differs from the commit that the agent began with."""

    path: str
    lines: int
    """Added and removed lines; 0 for a binary file."""


class WorkingState(Value, frozen=True, kw_only=True):
    """The files of a folder as git sees them."""

    tree: str
    changes: tuple[CountedChange, ...]
    patch: str


class GitRunner:
    """Runs git for the repositories of tasks. All methods block."""

    def __init__(self, env: Mapping[str, str]) -> None:
        program = find_git(env, roots=())
        if program is None:
            message = "git was not found on the PATH; an evaluation needs it"
            raise EvaluationImpossible(message)
        self._program = program
        self._environment = git_environment(env, roots=())

    def run(
        self,
        folder: Path,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a command that must succeed, and return its output.

        Raises:
            GitCommandFailed: It did not.
        """
        command = git_command(
            self._program,
            *arguments,
            environment=self._environment,
            **{**IDENTITY, **(variables or {})},
        )
        done = subprocess.run(  # noqa: S603 - as `git_command` makes it
            command.argv,
            cwd=folder,
            env=command.env,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise GitCommandFailed(one_line(done.stderr.decode("utf-8", "replace"))[:ERROR_CHARS])
        return done.stdout

    def text(self, folder: Path, *arguments: str) -> str:
        """Run a command as `run` does, and return its output as text."""
        return os.fsdecode(self.run(folder, *arguments)).strip()


def make_repository(git: GitRunner, loaded: LoadedTask, folder: Path) -> TaskRepository:
    """Make the repository of a task in a new folder. Blocking.

    Raises:
        TaskInvalid: Its files or its bundle cannot be used.
    """
    folder.mkdir(parents=True)
    _ = git.run(folder, "init", "-q", "--template=", "-b", BRANCH)
    info = folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    _ = (info / "exclude").write_text("".join(f"{name}\n" for name in NOT_COUNTED), "utf-8")
    if (loaded.folder / TREE).is_dir():
        return _from_tree(git, loaded, folder)
    return _from_bundle(git, loaded, folder)


def _from_tree(git: GitRunner, loaded: LoadedTask, folder: Path) -> TaskRepository:
    _ = shutil.copytree(
        loaded.folder / TREE,
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    base = _commit(git, folder, "Base")
    wanted = loaded.task.base_commit
    if wanted is not None and wanted != base:
        raise loaded.invalid("base_commit", f"{TREE} is the commit {base}, not {wanted}")
    head = base
    if loaded.task.kind == "review":
        apply_patch(git, loaded, folder, CHANGE)
        head = _commit(git, folder, "Change")
    return TaskRepository(folder=folder, base=base, head=head)


def _commit(git: GitRunner, folder: Path, message: str) -> str:
    _ = git.run(folder, "add", "--all")
    _ = git.run(folder, "commit", "-q", "-m", message)
    return git.text(folder, "rev-parse", "HEAD")


def _from_bundle(git: GitRunner, loaded: LoadedTask, folder: Path) -> TaskRepository:
    task = loaded.task
    base = task.base_commit or ""
    head = (task.head_commit if task.kind == "review" else None) or base
    bundle = loaded.folder / BUNDLE
    scratch = folder.with_name(f"{folder.name}.bundle")
    scratch.mkdir()
    try:
        _ = git.run(scratch, "init", "-q", "--bare", "--template=")
        try:
            _ = git.run(scratch, "bundle", "unbundle", str(bundle.resolve()))
        except GitCommandFailed as error:
            raise loaded.invalid(BUNDLE, f"git cannot read it ({error})") from error
        for field, commit in (("base_commit", base), ("head_commit", head)):
            try:
                _ = git.run(scratch, "cat-file", "-e", f"{commit}^{{commit}}")
            except GitCommandFailed as error:
                raise loaded.invalid(field, f"{BUNDLE} has no commit {commit!r}") from error
        # Only what the head reaches: the history after it may hold the solution.
        packed = git.run(
            scratch, "pack-objects", "-q", "--revs", "--stdout", stdin=f"{head}\n".encode()
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _ = git.run(folder, "unpack-objects", "-q", stdin=packed)
    _ = git.run(folder, "reset", "-q", "--hard", head)
    return TaskRepository(folder=folder, base=base, head=head)


def apply_patch(git: GitRunner, loaded: LoadedTask, folder: Path, name: str) -> None:
    """Apply a patch of the task to the files of a repository. Blocking.

    Raises:
        TaskInvalid: It does not apply.
    """
    patch = (loaded.folder / name).read_bytes()
    try:
        _ = git.run(folder, "apply", "--whitespace=nowarn", "-", stdin=patch)
    except GitCommandFailed as error:
        raise loaded.invalid(name, f"it does not apply ({error})") from error


def working_state(git: GitRunner, repository: TaskRepository, folder: Path) -> WorkingState:
    """Return the state of a folder against the head of a repository that nobody else has. Blocking.

    Args:
        git: Runs git.
        repository: Repository that the agent could not change.
        folder: Files that began as those of its head.
    """
    where = {
        "GIT_DIR": str(repository.folder / ".git"),
        "GIT_WORK_TREE": str(folder),
        "GIT_INDEX_FILE": str(repository.folder / ".git" / "index-of-state"),
    }
    _ = git.run(folder, "read-tree", repository.head, variables=where)
    _ = git.run(folder, "add", "--all", variables=where)
    tree = os.fsdecode(git.run(folder, "write-tree", variables=where)).strip()
    differ = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", repository.head, tree)
    counts = git.run(folder, *differ, "--numstat", "-z", variables=where)
    patch = git.run(folder, *differ, variables=where)
    return WorkingState(
        tree=tree,
        changes=tuple(_changes(os.fsdecode(counts).split("\0"))),
        patch=patch.decode("utf-8", "replace"),
    )


def _changes(rows: Sequence[str]) -> list[CountedChange]:
    changes: list[CountedChange] = []
    for row in rows:
        if row:
            added, removed, path = row.split("\t", 2)
            lines = sum(int(count) for count in (added, removed) if count.isdecimal())
            changes.append(CountedChange(path=path, lines=lines))
    return changes


def write_files(git: GitRunner, repository: TaskRepository, tree: str, folder: Path) -> None:
    """Write the files of a commit or tree into a new folder. Blocking."""
    folder.mkdir(parents=True)
    where = {
        "GIT_DIR": str(repository.folder / ".git"),
        "GIT_WORK_TREE": str(folder),
        "GIT_INDEX_FILE": str(repository.folder / ".git" / "index-of-files"),
    }
    _ = git.run(folder, "read-tree", tree, variables=where)
    _ = git.run(folder, "checkout-index", "--all", "--force", variables=where)
