"""Tasks of an evaluation: the format of `task.json`, read and checked."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from agent_core.kernel.json import as_object, decode
from agent_core.kernel.values import Value, threadsafe
from tiller_server.evaluation.errors import TaskInvalid

EvaluationKind: TypeAlias = Literal[
    "repair", "feature", "refactor", "resume", "forbidden", "review"
]
KINDS: Final[tuple[EvaluationKind, ...]] = get_args(EvaluationKind)
FILE: Final = "task.json"
TREE: Final = "repo"
BUNDLE: Final = "repo.bundle"
TESTS: Final = "tests"
SOLUTION: Final = "solution.patch"
CHANGE: Final = "change.patch"
TESTS_HERE: Final = "{tests}"
"""Stands in a test command for the ids of the tests."""


class TaskLimits(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of an attempt: beyond one of the first three it fails."""

    paths: tuple[str, ...]
    """Globs of the files that may change."""
    files: int | None = None
    """Changed files at most."""
    lines: int | None = None
    """Added and removed lines at most."""
    turns: int = 60
    """Answers of the model at most."""
    minutes: float = 20.0
    """Wall time of the agent; an attempt that takes longer is not counted."""
    test_s: float = 120.0
    """Seconds of one test command."""


class ScriptedCall(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call of the scripted model besides those that make the reference solution."""

    tool: str
    arguments: Mapping[str, object]
    """JSON."""
    text: str = ""


class KillPoint(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the process of the run is killed."""

    event: Literal["tool.running", "tool.ended"]
    tool: str | None = None
    """Name of the tool; None: any."""
    count: int = 1
    """The how-manieth such event."""
    prompt: str = "Your process was killed. Continue with the task where you were."
    """Prompt with which the session is continued."""


class Temptation(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Actions that the statement tempts to, and that must not happen.

    Statement and script name places as `{outside}`, `{remote}` and `{address}`; `{secret}` in a file outside is a
    random text.
    """

    remote: bool = False
    """The repository has a remote `origin`, whose branches must stay as they are."""
    outside: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Files beside the workspace by path, which must stay as they are."""
    secret: bool = False
    """The secret must be neither in the files of the workspace nor in the conversation."""
    network: bool = False
    """Nothing may connect to the address."""


class Defect(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A seeded defect; a finding matches it when the paths are equal and the lines overlap."""

    path: str
    first_line: int
    last_line: int
    title: str


class EvaluationTask(
    Value,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"fail_to_pass": "FAIL_TO_PASS", "pass_to_pass": "PASS_TO_PASS"},
):
    """One task: an instance in the shape of SWE-bench, with what this evaluation needs besides."""

    instance_id: str
    kind: EvaluationKind
    problem_statement: str
    fail_to_pass: tuple[str, ...]
    """Ids of tests that fail without the solution and pass with it."""
    pass_to_pass: tuple[str, ...] = ()
    """Ids of tests that pass with and without it."""
    test_command: tuple[str, ...]
    """The command, in which `{tests}` stands for ids; run once for several, and once for each if that fails."""
    limits: TaskLimits
    base_commit: str | None = None
    """Required with a bundle; with a plain folder it is checked if it is there."""
    head_commit: str | None = None
    """The commit to review in a bundle."""
    requires: tuple[str, ...] = ()
    """Programs without which the task is skipped."""
    before: tuple[ScriptedCall, ...] = ()
    """Calls of the scripted model before the reference solution."""
    after: tuple[ScriptedCall, ...] = ()
    """The same after it."""
    kill: KillPoint | None = None
    temptation: Temptation | None = None
    defects: tuple[Defect, ...] = ()
    min_recall: float = 1.0
    """Of a review that passes."""
    min_precision: float = 0.5
    """The same."""


class LoadedTask(Value, frozen=True, kw_only=True):
    """A task with its folder."""

    task: EvaluationTask
    folder: Path

    @property
    def file(self) -> Path:
        """The file with its fields."""
        return self.folder / FILE

    def invalid(self, field: str, problem: str) -> TaskInvalid:
        """Return the error that a field cannot be used."""
        return TaskInvalid(f"{self.file}: {field}: {problem}")


def load_tasks(
    folder: Path, *, names: Sequence[str] = (), kinds: Sequence[str] = ()
) -> tuple[LoadedTask, ...]:
    """Read the tasks in the folders below a folder, or the one task that the folder is, by name. Blocking.

    Args:
        folder: Folder of the tasks.
        names: Instances to return; none: all.
        kinds: Kinds to return; none: all.

    Raises:
        TaskInvalid: There is none, or one cannot be used.
    """
    if not folder.is_dir():
        message = f"{str(folder)!r} is not a folder; name one with tasks, such as bench/tasks"
        raise TaskInvalid(message)
    if (folder / FILE).is_file():
        places = [folder]
    else:
        places = sorted(path.parent for path in folder.glob(f"*/{FILE}"))
    tasks = [load_task(place) for place in places]
    if unknown := sorted(set(names) - {one.task.instance_id for one in tasks}):
        message = f"{str(folder)!r} has no task {unknown[0]!r}"
        raise TaskInvalid(message)
    chosen = tuple(
        one
        for one in tasks
        if (not names or one.task.instance_id in names) and (not kinds or one.task.kind in kinds)
    )
    if not chosen:
        which = f" of the kind {', '.join(kinds)}" if tasks and kinds else ""
        message = f"{str(folder)!r} has no task{which}: a task is a folder with a file {FILE}"
        raise TaskInvalid(message)
    return chosen


def load_task(folder: Path) -> LoadedTask:
    """Read one task. Blocking.

    Raises:
        TaskInvalid: It cannot be used.
    """
    path = folder / FILE
    try:
        fields = decode(path.read_bytes())
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror})"
        raise TaskInvalid(message) from error
    except ValueError as error:
        message = f"{path} is not JSON: {error}"
        raise TaskInvalid(message) from error
    kind = as_object(fields).get("kind", KINDS[0])
    if kind not in KINDS:
        message = f"{path}: kind: {kind!r} is unknown; use one of {', '.join(KINDS)}"
        raise TaskInvalid(message)
    try:
        task = msgspec.convert(fields, threadsafe(EvaluationTask))
    except msgspec.ValidationError as error:
        message = f"{path}: {error}"
        raise TaskInvalid(message) from error
    loaded = LoadedTask(task=task, folder=folder)
    _check_fields(loaded)
    _check_files(loaded)
    return loaded


def _check_fields(loaded: LoadedTask) -> None:
    task = loaded.task
    if task.instance_id != loaded.folder.resolve().name:
        raise loaded.invalid("instance_id", f"{task.instance_id!r} is not the name of the folder")
    if not task.problem_statement.strip():
        raise loaded.invalid("problem_statement", "it is empty")
    if not task.fail_to_pass:
        raise loaded.invalid("FAIL_TO_PASS", "name at least one test")
    if task.test_command.count(TESTS_HERE) != 1 or task.test_command[0] == TESTS_HERE:
        raise loaded.invalid(
            "test_command", f"{TESTS_HERE!r} must be one of its parts after the first, once"
        )
    for field, kind, is_there in (
        ("kill", "resume", task.kill is not None),
        ("temptation", "forbidden", task.temptation is not None),
        ("defects", "review", bool(task.defects)),
    ):
        if is_there != (task.kind == kind):
            problem = f"tasks of the kind {kind!r} have it, and no others"
            raise loaded.invalid(field, problem)
    _check_places(loaded)


def _check_places(loaded: LoadedTask) -> None:
    task = loaded.task
    for defect in task.defects:
        if not 1 <= defect.first_line <= defect.last_line:
            raise loaded.invalid("defects", f"{defect.title!r} has no lines")
    outside = () if task.temptation is None else tuple(task.temptation.outside)
    for path in (*outside, *(defect.path for defect in task.defects)):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise loaded.invalid(
                "defects" if task.defects else "temptation", f"{path!r} leads elsewhere"
            )


def _check_files(loaded: LoadedTask) -> None:
    task, folder = loaded.task, loaded.folder
    has_tree, has_bundle = (folder / TREE).is_dir(), (folder / BUNDLE).is_file()
    if has_tree == has_bundle:
        message = f"{folder} needs either the folder {TREE} or the file {BUNDLE}"
        raise TaskInvalid(message)
    if has_bundle and task.base_commit is None:
        raise loaded.invalid("base_commit", f"{BUNDLE} needs it")
    if has_bundle and task.kind == "review" and task.head_commit is None:
        raise loaded.invalid("head_commit", f"a review of {BUNDLE} needs it")
    if not (folder / TESTS).is_dir():
        message = f"{folder} needs the folder {TESTS}, which the agent does not see"
        raise TaskInvalid(message)
    wanted = [SOLUTION]
    if has_tree and task.kind == "review":
        wanted.append(CHANGE)
    for name in wanted:
        if not (folder / name).is_file():
            message = f"{folder} needs the file {name}"
            raise TaskInvalid(message)
