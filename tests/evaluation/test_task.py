"""A task that cannot be used is named by its file and the field, in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.workspace.evaluation_tasks import FIELDS, write_task
from tiller_server.evaluation.errors import TaskInvalid
from tiller_server.evaluation.tasks.task import load_task, load_tasks

KILL = {"event": "tool.ended"}
DEFECT = {"path": "sums.py", "first_line": 1, "last_line": 1, "title": "t"}


def test_a_task_is_read(tmp_path: Path) -> None:
    write_task(tmp_path)
    write_task(tmp_path, instance_id="other", kind="resume", kill=KILL)
    both = load_tasks(tmp_path)
    assert [one.task.instance_id for one in both] == ["other", "sums"]
    (only,) = load_tasks(tmp_path, kinds=["repair"])
    assert (only.task.kind, only.task.limits.paths) == ("repair", ("sums.py",))
    assert load_tasks(tmp_path / "sums") == (only,)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"problem_statement": None}, "missing required field `problem_statement`"),
        ({"kind": "riddle"}, "kind: 'riddle' is unknown; use one of repair, feature"),
        ({"hints": "x"}, "unknown field `hints`"),
        ({"limits": {"paths": [], "minuts": 3}}, "unknown field `minuts` - at `$.limits`"),
        ({"limits": {"paths": [1]}}, "Expected `str`, got `int` - at `$.limits.paths[0]`"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS: name at least one test"),
        ({"problem_statement": " "}, "problem_statement: it is empty"),
        ({"test_command": ["make", "test"]}, "test_command: '{tests}' must be"),
        ({"kind": "resume"}, "kill: tasks of the kind 'resume' have it, and no others"),
        ({"kill": KILL}, "kill: tasks of the kind 'resume' have it"),
        ({"kind": "forbidden"}, "temptation: tasks of the kind 'forbidden' have it"),
        ({"kind": "review"}, "defects: tasks of the kind 'review' have it"),
        ({"defects": [DEFECT]}, "defects: tasks of the kind 'review' have"),
        (
            {"kind": "review", "defects": [{**DEFECT, "first_line": 2}]},
            "defects: 't' has no lines",
        ),
        (
            {"kind": "forbidden", "temptation": {"outside": {"../x": ""}}},
            "temptation: '../x' leads elsewhere",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_file(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    folder = write_task(tmp_path, **fields)
    with pytest.raises(TaskInvalid) as raised:
        load_task(folder)
    text = str(raised.value)
    assert text.startswith(f"{folder / 'task.json'}: ")
    assert problem in text
    assert "\n" not in text


def test_the_id_is_the_name_of_the_folder(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    (folder / "task.json").write_text(json.dumps({**FIELDS, "instance_id": "sum"}), "utf-8")
    with pytest.raises(TaskInvalid, match="instance_id: 'sum' is not the name of the folder"):
        load_task(folder)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    (folder / "solution.patch").unlink()
    with pytest.raises(TaskInvalid, match=r"sums needs the file solution\.patch"):
        load_task(folder)
    (folder / "repo.bundle").touch()
    with pytest.raises(TaskInvalid, match=r"needs either the folder repo or the file repo\.bundle"):
        load_task(folder)
    (folder / "task.json").write_text("{", "utf-8")
    with pytest.raises(TaskInvalid, match=r"task\.json is not JSON: "):
        load_task(folder)


def test_a_folder_without_tasks_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskInvalid, match="has no task: a task is a folder with"):
        load_tasks(tmp_path)
    with pytest.raises(TaskInvalid, match="is not a folder"):
        load_tasks(tmp_path / "gone")
    write_task(tmp_path)
    with pytest.raises(TaskInvalid, match="has no task 'gone'"):
        load_tasks(tmp_path, names=["gone"])
    with pytest.raises(TaskInvalid, match="has no task of the kind review"):
        load_tasks(tmp_path, kinds=["review"])
