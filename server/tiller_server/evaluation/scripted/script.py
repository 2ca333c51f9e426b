"""Script of the scripted model: the tool calls by which an agent would make the reference solution of a task."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, cast

from agent_core.kernel.values import Value
from tiller_server.evaluation.tasks.repositories import TaskRepository
from tiller_server.evaluation.tasks.task import TESTS, TESTS_HERE, LoadedTask, ScriptedCall

CLOSING: Final = "The task is done."
MOST_CONTEXT: Final = 400
"""Lines around a change that an edit may name to be unique."""


class ModelScript(Value, frozen=True, kw_only=True):
    """Calls of the scripted model, in order, and its last text."""

    calls: tuple[ScriptedCall, ...]
    closing: str = CLOSING


def script_of(
    loaded: LoadedTask, repository: TaskRepository, solved: Path, *, names: Mapping[str, str]
) -> ModelScript:
    """Return the script of a task. Blocking.

    Args:
        loaded: The task.
        repository: Its repository.
        solved: Folder with the files of the reference solution.
        names: Places that calls can name, as `{outside}`.
    """
    task = loaded.task
    if task.kind == "review":
        return ModelScript(calls=tuple(_reports(loaded, repository.folder)))
    return ModelScript(
        calls=(
            *(_placed(call, names) for call in task.before),
            *_solution(repository.folder, solved),
            *_visible_tests(loaded, repository.folder),
            *(_placed(call, names) for call in task.after),
        )
    )


def _reports(loaded: LoadedTask, folder: Path) -> Iterator[ScriptedCall]:
    for defect in loaded.task.defects:
        lines = (folder / defect.path).read_text("utf-8").splitlines()
        arguments: dict[str, object] = {
            "path": defect.path,
            "line": defect.first_line,
            "end_line": defect.last_line,
            "severity": "error",
            "category": "bug",
            "title": defect.title,
            "message": defect.title,
            "evidence": "\n".join(lines[defect.first_line - 1 : defect.last_line]),
            "confidence": 0.9,
        }
        yield ScriptedCall(tool="report_finding", arguments=arguments)


def _solution(before: Path, after: Path) -> Iterator[ScriptedCall]:
    names = sorted({*_files(before), *_files(after)})
    for name in names:
        old, new = _text(before / name), _text(after / name)
        if old == new:
            continue
        if new is None:
            yield ScriptedCall(tool="bash", arguments={"command": f"rm -- {shlex.quote(name)}"})
        elif old is None:
            yield ScriptedCall(tool="write", arguments={"path": name, "content": new})
        else:
            yield ScriptedCall(tool="read", arguments={"path": name})
            yield ScriptedCall(tool="edit", arguments={"path": name, "edits": edits_of(old, new)})


def _visible_tests(loaded: LoadedTask, folder: Path) -> Iterator[ScriptedCall]:
    if (folder / TESTS).is_dir():
        arguments = [word for word in loaded.task.test_command if word != TESTS_HERE]
        yield ScriptedCall(tool="bash", arguments={"command": shlex.join(arguments)})


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and ".git" not in relative.parts and "__pycache__" not in relative.parts:
            yield relative.as_posix()


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def edits_of(old: str, new: str) -> list[object]:
    """Return the edits from one text to another: each names lines that are unique in the old text. Pure."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    blocks = [
        block
        for block in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    for context in range(1, MOST_CONTEXT):
        merged = _merged(blocks, context, len(before))
        texts = ["".join(before[start:end]) for start, end, _, _ in merged]
        if all(text and _is_unique(text, old) for text in texts):
            made: list[object] = []
            for (_, _, start, end), text in zip(merged, texts, strict=True):
                edit: Mapping[str, object] = {"oldText": text, "newText": "".join(after[start:end])}
                made.append(edit)
            return made
    return [{"oldText": old, "newText": new}]


def _is_unique(part: str, text: str) -> bool:
    # Not `count`, which leaves out occurrences that overlap.
    return text.find(part, text.find(part) + 1) < 0


def _merged(
    blocks: Sequence[tuple[str, int, int, int, int]], context: int, length: int
) -> list[tuple[int, int, int, int]]:
    """Return the changed lines with lines around them, as ranges of both texts that do not overlap."""
    ranges: list[tuple[int, int, int, int]] = []
    for _, start, end, new_start, new_end in blocks:
        above, below = min(context, start), min(context, length - end)
        widened = (start - above, end + below, new_start - above, new_end + below)
        if ranges and widened[0] < ranges[-1][1]:
            first = ranges.pop()
            widened = (first[0], widened[1], first[2], widened[3])
        ranges.append(widened)
    return ranges


def _placed(call: ScriptedCall, names: Mapping[str, str]) -> ScriptedCall:
    arguments = {key: placed(value, names) for key, value in call.arguments.items()}
    return ScriptedCall(tool=call.tool, arguments=arguments, text=call.text)


def placed(value: object, names: Mapping[str, str]) -> object:
    """Return a value with the places of an attempt in the place of their names. Pure."""
    if isinstance(value, str):
        for name, place in names.items():
            value = value.replace(f"{{{name}}}", place)
        return value
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [placed(item, names) for item in items]
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {key: placed(item, names) for key, item in fields.items()}
    return value
