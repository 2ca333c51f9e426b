"""A task is refused unless its tests fail without its solution and pass with it."""

import os
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from tests.support.workspace.contained import require_full
from tests.support.workspace.evaluation_tasks import BROKEN, PATCH, TEST, TESTS, write_task
from tiller_server.evaluation.errors import TaskInvalid
from tiller_server.evaluation.place import make_place
from tiller_server.evaluation.tasks.repositories import GitRunner, TaskRepository
from tiller_server.evaluation.tasks.task import load_task
from tiller_server.evaluation.tasks.validation import prepare_task

ENV = {"PATH": os.defpath}
GIT = GitRunner(ENV)


async def prepare(tmp_path: Path, **changes: Any) -> TaskRepository:
    """Check the task both ways, with changes to its files or fields."""
    await to_thread.run_sync(require_full)
    folder = await to_thread.run_sync(lambda: write_task(tmp_path / "suite", **changes))
    loaded = await to_thread.run_sync(load_task, folder)
    place = await to_thread.run_sync(
        lambda: make_place(
            tmp_path / "place",
            env={**ENV, "HOME": str(tmp_path)},
            hidden=[tmp_path / "suite"],
            contained=True,
            test_s=10.0,
            providers={},
        )
    )
    return await prepare_task(GIT, loaded, folder=tmp_path / "work", place=place)


async def test_a_good_task_gives_its_repository(tmp_path: Path) -> None:
    repository = await prepare(tmp_path)
    assert sorted(path.name for path in repository.folder.iterdir()) == [".git", "sums.py"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"FAIL_TO_PASS": [TEST + "test_add", TEST + "test_zero"], "PASS_TO_PASS": []},
            f"FAIL_TO_PASS: {TEST}test_zero passes without the solution",
        ),
        (
            {"FAIL_TO_PASS": [TEST + "test_add"], "PASS_TO_PASS": [TEST + "test_gone"]},
            f"PASS_TO_PASS: {TEST}test_gone fails without the solution: FAILED (errors=1)",
        ),
        (
            {"patch": PATCH.replace("+    return a + b", "+    return a * b")},
            f"solution.patch: {TEST}test_add fails with the solution: FAILED (failures=1)",
        ),
        (
            {"code": BROKEN.replace("a - b", "b - a")},
            "solution.patch: it does not apply (error: patch failed: sums.py:1",
        ),
        (
            {"limits": {"paths": ["other.py"]}},
            "limits: the solution does not keep to them: sums.py was changed, which is not among",
        ),
        (
            {"limits": {"paths": ["*"], "lines": 1}},
            "limits: the solution does not keep to them: 2 lines were changed, at most 1 may be",
        ),
        (
            {"tests": TESTS.replace("2, 3), 5", "3, 0), 3")},
            f"FAIL_TO_PASS: {TEST}test_add passes without the solution",
        ),
    ],
)
async def test_a_task_that_proves_nothing_is_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TaskInvalid) as raised:
        await prepare(tmp_path, **changes)
    assert str(raised.value).startswith(f"{tmp_path / 'suite/sums/task.json'}: {problem}")
