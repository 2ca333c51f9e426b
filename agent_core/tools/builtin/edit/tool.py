"""The tool `edit`: replaces exact pieces of a file's text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, cast

from anyio import to_thread
from pydantic import Field, field_validator, model_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import EditConflicted, NotText, StaleText, ToolError
from agent_core.kernel.truncation import format_size
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.edit.diff import Diff, diff_of
from agent_core.tools.builtin.edit.line_endings import with_lf
from agent_core.tools.builtin.edit.match import EditedText, EditSpan, Replacement, apply_edits
from agent_core.tools.builtin.path_arguments import PATH_NAMES, path_said
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace import FileBytes, FileText, WriteResult
from agent_core.workspace.diff.merge import merge
from agent_core.workspace.diff.minimal_edits import line_edits

TRIES = 3
"""How often the edit is looked up anew when the text changes at the same time."""
TEXT_NAMES: Mapping[str, str] = {
    "old_text": "oldText",
    "new_text": "newText",
    "old_string": "oldText",
    "new_string": "newText",
    "oldString": "oldText",
    "newString": "newText",
}
"""Aliases of the text arguments, from the tools of other agents that models remember."""


class EditBlock(ToolArguments):
    """One replacement."""

    other_names: ClassVar[Mapping[str, str]] = TEXT_NAMES

    old_text: str = Field(
        alias="oldText",
        description="The exact text to replace, with all its whitespace; it must occur once in the file",
    )
    new_text: str = Field(alias="newText", description="What to put in its place")


class EditArguments(ToolArguments):
    """Arguments of `edit`."""

    other_names: ClassVar[Mapping[str, str]] = {**PATH_NAMES, **TEXT_NAMES}

    path: str = Field(description="The file, relative to the workspace or absolute")
    edits: list[EditBlock] = Field(
        description="The replacements; all are looked up in the file as it is now and must not overlap"
    )

    @field_validator("edits")
    @classmethod
    def _some(cls, edits: list[EditBlock]) -> list[EditBlock]:
        if not edits:
            message = "Edit tool input is invalid. edits must contain at least one replacement."
            raise ValueError(message)
        return edits

    @model_validator(mode="before")
    @classmethod
    def _single(cls, given: object) -> object:
        """Accept one replacement that stands beside the path instead of in the list."""
        if not isinstance(given, Mapping):
            return given
        arguments = dict(cast("JsonObject", given))
        block = {
            TEXT_NAMES.get(name, name): arguments.pop(name)
            for name in ("oldText", "newText", *TEXT_NAMES)
            if name in arguments
        }
        if "oldText" in block and not arguments.get("edits"):
            arguments["edits"] = [block]
        return arguments


def edit_tool() -> ModelTool[EditArguments]:
    """Make the tool."""
    return ModelTool(
        spec=ToolSpec(
            name="edit",
            description="Change a file by replacing exact pieces of its text. Each oldText must occur exactly once and is looked up in the file as it is now, not after earlier edits of the same call. Several changes to one file go into one call.",
            parameters=schema_of(EditArguments),
            kind="edit",
            snippet="Replace exact pieces of a file's text",
            guidelines=(
                "Use edit for changes; oldText must match exactly and be unique.",
                "Put several changes to one file into one edit call; keep each oldText as short as it can be while unique.",
            ),
        ),
        arguments=EditArguments,
        titled=lambda arguments: f"edit {path_said(arguments)}",
        execute=_edit,
    )


async def _edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    files = context.files
    # First where the file is, also under another spelling; then whether it may be written.
    found = await files.resolve(arguments.path, "read")
    path = await files.resolve(str(found), "write")
    edits = [Replacement(old=block.old_text, new=block.new_text) for block in arguments.edits]
    shown = _relative(path, context.workspace.roots)
    tries = TRIES
    conflict: EditConflicted | None = None
    while True:
        file = _text(await files.read(path), arguments.path)
        try:
            edited = await to_thread.run_sync(_applied, file, edits, arguments.path)
        except ToolError as error:
            # It was there a moment ago: what stands there now says more than that it is gone.
            raise conflict or error from None
        try:
            written = await files.write(path, edited.text, base=file)
        except StaleText as error:
            tries -= 1
            conflict = error if isinstance(error, EditConflicted) else conflict
            if tries == 0:
                raise
            continue
        break
    diff = await to_thread.run_sync(_diff, file, edited, written, shown)
    cached = context.seen.get(path)
    if cached is not None:
        context.seen.put(path, await to_thread.run_sync(_cached_text, cached, file, edited))
    return _result(arguments, written, diff, warning=context.name_warning)


def _applied(file: FileText, edits: list[Replacement], path: str) -> EditedText:
    return apply_edits(file.text, edits, path=path)


def _diff(file: FileText, edited: EditedText, written: WriteResult, shown: str) -> Diff:
    """Describe the change as it was made: in text that is newer than what was read, it stands elsewhere."""
    if written.before is None and written.edited is None:
        return diff_of(edited.before_lf, edited.spans, path=shown)
    before = with_lf(file.text if written.before is None else written.before)
    after = with_lf(edited.text if written.edited is None else written.edited)
    spans = [
        EditSpan(start=one.start, end=one.end, new=one.new_text)
        for one in line_edits(before, after)
    ]
    return diff_of(before, spans, path=shown)


def _cached_text(cached: str, file: FileText, edited: EditedText) -> str:
    """Return what a model knows of a file after an edit: it saw nothing else of what changed since it read the file."""
    if cached == file.text:
        return edited.text
    merged = merge(file.text, edited.text, cached)
    return cached if merged.conflicts else merged.text


def _text(file: FileText | FileBytes, path: str) -> FileText:
    if isinstance(file, FileBytes):
        size = format_size(len(file.data))
        message = f"Cannot edit {path}: it is a binary file ({size}), not text. Use bash with a program for its format."
        raise NotText(message)
    return file


def _relative(path: Path, roots: Sequence[Path]) -> str:
    for root in roots:
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return path.as_posix().lstrip("/")


def _result(
    arguments: EditArguments, written: WriteResult, diff: Diff, *, warning: str | None
) -> ToolResult:
    text = f"Successfully replaced {len(arguments.edits)} block(s) in {arguments.path}."
    if written.note:
        text = f"{text} {written.note}"
    if warning:
        text = f"{text}\n{warning}"
    details: dict[str, JsonValue] = {
        "path": str(written.path),
        "diff": diff.diff,
        "patch": diff.patch,
        "first_changed_line": diff.first_changed_line,
        "additions": diff.additions,
        "deletions": diff.deletions,
        "truncated": diff.cut,
        "source": written.source,
        "saved": written.saved,
        "sha256": written.sha256,
        "version": written.version,
        "changed_by_user": written.changed_by_user,
    }
    return text_result(text, details=details)
