"""Checks a task both ways: without its solution tests fail, and with it all of them pass within the limits."""

import shutil
from pathlib import Path
from typing import Final

from anyio import to_thread

from tiller_server.evaluation.grades import beyond_limits, opened_tests, write_graded
from tiller_server.evaluation.place import AgentPlace
from tiller_server.evaluation.tasks.repositories import (
    GitRunner,
    TaskRepository,
    WorkingState,
    apply_patch,
    make_repository,
    working_state,
)
from tiller_server.evaluation.tasks.task import SOLUTION, LoadedTask

SOLVED: Final = "solved"
"""Folder with the files of the reference solution, below that of the task."""


async def prepare_task(
    git: GitRunner, loaded: LoadedTask, *, folder: Path, place: AgentPlace
) -> TaskRepository:
    """Make the repository of a task, and check the task both ways.

    Args:
        git: Runs git.
        loaded: Task to prepare.
        folder: New folder for its files.
        place: Where tests run.

    Returns:
        The repository, of which agents get copies.

    Raises:
        TaskInvalid: It passes without its solution, fails with it, or its files cannot be used.
    """
    repository = await to_thread.run_sync(make_repository, git, loaded, folder / "repository")
    task = loaded.task
    before = folder / "before"
    await write_graded(git, loaded, repository, repository.head, before)
    async with opened_tests(loaded, before, place) as tests:
        wrong = (await tests.run_each(task.fail_to_pass)).passed
        if wrong:
            raise loaded.invalid("FAIL_TO_PASS", f"{wrong[0]} passes without the solution")
        broken = await tests.run(task.pass_to_pass)
        if broken.failed:
            problem = f"{broken.failed[0]} fails without the solution: {_last_line(broken.output)}"
            raise loaded.invalid("PASS_TO_PASS", problem)
    state = await to_thread.run_sync(_solved, git, loaded, repository, folder / SOLVED)
    if beyond := beyond_limits(state.changes, task.limits):
        raise loaded.invalid("limits", f"the solution does not keep to them: {beyond[0]}")
    after = folder / "after"
    await write_graded(git, loaded, repository, state.tree, after)
    async with opened_tests(loaded, after, place) as tests:
        failing = await tests.run((*task.fail_to_pass, *task.pass_to_pass))
        if failing.failed:
            problem = f"{failing.failed[0]} fails with the solution: {_last_line(failing.output)}"
            raise loaded.invalid(SOLUTION, problem)
    await to_thread.run_sync(_check_defects, loaded, repository, state)
    await to_thread.run_sync(_remove, before, after)
    return repository


def _solved(
    git: GitRunner, loaded: LoadedTask, repository: TaskRepository, folder: Path
) -> WorkingState:
    _ = shutil.copytree(repository.folder, folder, symlinks=True)
    apply_patch(git, loaded, folder, SOLUTION)
    return working_state(git, repository, folder)


def _check_defects(loaded: LoadedTask, repository: TaskRepository, state: WorkingState) -> None:
    solved = {change.path for change in state.changes}
    for defect in loaded.task.defects:
        path = repository.folder / defect.path
        count = len(path.read_text("utf-8").splitlines()) if path.is_file() else 0
        if defect.last_line > count:
            raise loaded.invalid("defects", f"{defect.path} has no line {defect.last_line}")
        if defect.path not in solved:
            raise loaded.invalid(
                "defects", f"the solution leaves {defect.path} as it is, with {defect.title!r}"
            )


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"
