"""The tool `edit`: one text for another in one file, with a diff of what changed."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from pydantic import Field, field_validator, model_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import EditConflicted, NotText, StaleText, ToolError
from agent_core.kernel.text import DEFAULT_MAX_BYTES, format_size, truncate_head
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.search.common import PATH_NAMES, path_said
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace import FileBytes, FileText, WriteResult
from agent_core.workspace.diff.unified_diff import (
    DiffHunk,
    LineChange,
    hunks_around,
    split_lines,
    unified_rows,
)

if TYPE_CHECKING:
    from agent_core.tools.builtin.edit.match import EditedText, EditSpan, Replacement

CONTEXT_LINES = 4
ALIGN_LINES = 1_000
"""Up to this many lines on both sides are aligned; beyond that a region counts as replaced whole."""
DIFF_LINES = 5_000
DIFF_BYTES = 2 * DEFAULT_MAX_BYTES


class Diff(Value, frozen=True, kw_only=True):
    """A change in two notations, with its size."""

    diff: str
    """`-12 old`, `+12 new`, ` 11 same`, ` ...` where lines are left out."""
    patch: str
    """A unified diff."""
    first_changed_line: int
    """In the new text, from 1."""
    additions: int
    deletions: int
    cut: bool
    """The notations are too long to be given whole."""


def diff_of(before_lf: str, spans: "Sequence[EditSpan]", *, path: str) -> Diff:
    """Return the diff and the patch of a change.

    Args:
        before_lf: The old text with LF endings.
        spans: The replacements, sorted and without overlap.
        path: Path for the head of the patch, as it is shown.
    """
    changes = chain.from_iterable(map(_aligned, _blocks(before_lf, spans)))
    hunks = list(hunks_around(before_lf, changes, context=CONTEXT_LINES))
    added, removed = (sum(hunk.count(sign) for hunk in hunks) for sign in "+-")
    shown = truncate_head("\n".join(_shown(hunks)), max_lines=DIFF_LINES, max_bytes=DIFF_BYTES)
    rows = chain((f"--- a/{path}\n+++ b/{path}\n",), unified_rows(hunks))
    patch = truncate_head("".join(rows), max_lines=DIFF_LINES, max_bytes=DIFF_BYTES)
    return Diff(
        diff=shown.content,
        patch=patch.content,
        first_changed_line=_first_changed(hunks),
        additions=added,
        deletions=removed,
        cut=shown.truncated or patch.truncated,
    )


def written_diff(written: WriteResult, *, base: str, asked: str, path: str) -> Diff:
    """Return the diff and the patch of a write.

    Args:
        written: The write.
        base: The text that was there.
        asked: The text that was to be written.
        path: Path for the head of the patch, as it is shown.
    """
    from agent_core.tools.builtin.edit.match import EditSpan, with_lf  # noqa: PLC0415 - at first use
    from agent_core.workspace.diff.minimal_edits import line_edits  # noqa: PLC0415 - at first use

    before = with_lf(base if written.before is None else written.before)
    after = with_lf(asked if written.edited is None else written.edited)
    spans = [
        EditSpan(start=one.start, end=one.end, new=one.new_text)
        for one in line_edits(before, after)
    ]
    return diff_of(before, spans, path=path)


def _blocks(text: str, spans: "Sequence[EditSpan]") -> Iterator[LineChange]:
    """Widen spans to whole lines; those that share a line become one."""
    waiting = list(reversed(spans))
    while waiting:
        start = done = text.rfind("\n", 0, waiting[-1].start) + 1
        end = start
        new = ""
        while waiting and (end == start or waiting[-1].start < end):
            span = waiting.pop()
            new += text[done : span.start] + span.new
            done = span.end
            end = _line_end(text, done, open_line=new != "" and not new.endswith("\n"))
        new += text[done:end]
        yield LineChange(start=start, removed=split_lines(text[start:end]), added=split_lines(new))


def _line_end(text: str, offset: int, *, open_line: bool) -> int:
    """Return where the line that holds an offset ends; the offset itself when it begins a line and none is open."""
    if not open_line and (offset == 0 or text[offset - 1] == "\n"):
        return offset
    newline = text.find("\n", offset)
    return len(text) if newline < 0 else newline + 1


def _aligned(block: LineChange) -> Iterator[LineChange]:
    """Remove the unchanged lines from a block, which may split it; from a large block only those at its ends."""
    old, new = block.removed, block.added
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = block.start + sum(len(line) for line in old[:head])
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > ALIGN_LINES:
        yield LineChange(start=start, removed=old, added=new)
        return
    # `line_hunks` pairs equal lines differently in 15 % of edits, and what people and programs see is this.
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            offset = start + sum(len(line) for line in old[:a])
            yield LineChange(start=offset, removed=old[a:b], added=new[c:d])


def _first_changed(hunks: Sequence[DiffHunk]) -> int:
    for hunk in hunks:
        line = hunk.new_line
        for sign, _ in hunk.rows:
            if sign != " ":
                return line
            line += 1
    return 1


def _shown(hunks: Sequence[DiffHunk]) -> Iterator[str]:
    last = max((max(hunk.old_line, hunk.new_line) + len(hunk.rows) for hunk in hunks), default=1)
    width = len(str(last - 1))
    skipped = f" {'':>{width}} ..."
    for index, hunk in enumerate(hunks):
        if index > 0 or hunk.old_line > 1:
            yield skipped
        old, new = hunk.old_line, hunk.new_line
        for sign, text in hunk.rows:
            yield f"{sign}{new if sign == '+' else old:>{width}} {text.removesuffix(chr(10))}"
            old += sign != "+"
            new += sign != "-"
    if hunks and not hunks[-1].is_last:
        yield skipped


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
    from agent_core.tools.builtin.edit.match import Replacement  # noqa: PLC0415 - at first use

    files = context.files
    # First where the file is, also under another spelling; then whether it may be written.
    found = await files.resolve(arguments.path, "read")
    path = await files.resolve(str(found), "write")
    edits = [Replacement(old=block.old_text, new=block.new_text) for block in arguments.edits]
    shown = relative_path(path, context.workspace.roots)
    tries = TRIES
    conflict: EditConflicted | None = None
    while True:
        file = _text(await files.read(path), arguments.path)
        try:
            edited = await run_in_thread(_applied, file, edits, arguments.path)
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
    diff = await run_in_thread(_diff, file, edited, written, shown)
    cached = context.seen.get(path)
    if cached is not None:
        context.seen.put(path, await run_in_thread(_cached_text, cached, file, edited))
    return _result(arguments, written, diff, warning=context.name_warning)


def _applied(file: FileText, edits: "list[Replacement]", path: str) -> "EditedText":
    from agent_core.tools.builtin.edit.match import apply_edits  # noqa: PLC0415 - at first use

    return apply_edits(file.text, edits, path=path)


def _diff(file: FileText, edited: "EditedText", written: WriteResult, shown: str) -> Diff:
    """Describe the change as it was made: in text that is newer than what was read, it stands elsewhere."""
    if written.before is None and written.edited is None:
        return diff_of(edited.before_lf, edited.spans, path=shown)
    return written_diff(written, base=file.text, asked=edited.text, path=shown)


def _cached_text(cached: str, file: FileText, edited: "EditedText") -> str:
    """Return what a model knows of a file after an edit: it saw nothing else of what changed since it read the file."""
    from agent_core.workspace.diff.merge import merge  # noqa: PLC0415 - at first use

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


def relative_path(path: Path, roots: Sequence[Path]) -> str:
    """Return a path as the head of a patch shows it."""
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
