"""The tool `write`: makes a file, or gives it a whole new text."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from msgspec.structs import replace
from pydantic import Field

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import EditConflicted, FileMissing, NotText, StaleText
from agent_core.kernel.text import format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.edit.tool import relative_path, written_diff
from agent_core.tools.builtin.search.common import PATH_NAMES, path_said
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace import FileBytes, Files, FileText, WriteResult

TRIES = 3
"""How often the file is looked at anew when it changes at the same time."""
KEPT: Final = "What the user changed in the file since you read it is kept. These lines are now:"


class WriteArguments(ToolArguments):
    """Arguments of `write`."""

    other_names: ClassVar[Mapping[str, str]] = PATH_NAMES

    path: str = Field(
        description="The file, relative to the workspace or absolute; missing folders are made"
    )
    content: str = Field(description="The whole new text")


def write_tool() -> ModelTool[WriteArguments]:
    """Make the tool."""
    return ModelTool(
        spec=ToolSpec(
            name="write",
            description="Write a whole file. A file that is there is overwritten; missing folders are made.",
            parameters=schema_of(WriteArguments),
            kind="edit",
            snippet="Create or overwrite a file",
            guidelines=(
                "Use write for new files and complete rewrites only, edit for everything else.",
            ),
        ),
        arguments=WriteArguments,
        titled=lambda arguments: f"write {path_said(arguments)}",
        execute=_write,
    )


async def _write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
    from agent_core.tools.builtin.redaction_marks import check_marks  # noqa: PLC0415 - at first use
    from agent_core.workspace.diff.conflict_message import changes_message  # noqa: PLC0415 - at first use

    files = context.files
    content = arguments.content
    path = await files.resolve(arguments.path, "write")
    tries = TRIES
    while True:
        base = await _base(files, path, said=arguments.path)
        try:
            if base is not None:
                check_marks(content, before=base.text, path=arguments.path)
            kept = await _kept(context.seen.get(path), content, base=base)
            written, converted = await _over(
                files, path, content if kept is None else kept, base=base
            )
        except EditConflicted:
            raise  # to try again would be to write over what the user just typed
        except StaleText:
            tries -= 1
            if tries == 0:
                raise
            continue
        break
    context.seen.put(path, content)
    patch: dict[str, JsonValue] = {}
    if base is not None:
        shown = relative_path(path, context.workspace.roots)
        asked = content if kept is None else kept
        diff = await run_in_thread(
            partial(written_diff, written, base=base.text, asked=asked, path=shown)
        )
        patch = {"patch": diff.patch, "truncated": diff.cut}
    size = len(content.encode())
    notes = [
        f"Successfully wrote {size} bytes to {arguments.path}",
        *([f"Its encoding was {converted}; it is UTF-8 now."] if converted else []),
        *([written.note] if written.note else []),
        *([context.name_warning] if context.name_warning else []),
        *(
            [f"{KEPT}\n{changes_message(content, kept)}"]
            if kept is not None and written.text is None
            else []
        ),
    ]
    details: dict[str, JsonValue] = {
        "path": str(written.path),
        "byte_size": size,
        "created": written.created,
        "source": written.source,
        "saved": written.saved,
        "sha256": written.sha256,
        "version": written.version,
        "changed_by_user": written.changed_by_user or kept is not None,
        **patch,
    }
    return text_result("\n".join(notes), details=details)


async def _kept(cached: str | None, content: str, *, base: FileText | None) -> str | None:
    """Return the text to write when somebody changed a file since the model read it; None: as the model has it.

    Raises:
        EditConflicted: They changed the same lines.
    """
    from agent_core.workspace.diff.conflict_message import conflict_message  # noqa: PLC0415 - at first use
    from agent_core.workspace.diff.merge import merge  # noqa: PLC0415 - at first use

    if base is None or cached is None or cached == base.text:
        return None
    merged = await run_in_thread(merge, cached, content, base.text)
    if merged.conflicts:
        message = (
            f"{base.path} was changed since you read it, by the user most likely, in the same lines: nothing was written. "
            f"These lines are now:\n{conflict_message(merged.conflicts)}\n"
            "Write what you want with these lines in it, or read the file again if they are to go."
        )
        raise EditConflicted(message)
    return None if merged.text == content else merged.text


async def _base(files: Files, path: Path, *, said: str) -> FileText | None:
    """Read what will be overwritten."""
    try:
        file = await files.read(path)
    except FileMissing:
        return None
    if isinstance(file, FileBytes):
        message = f"Cannot overwrite {said}: it is a binary file ({format_size(len(file.data))}). Choose another name, or remove it with bash first."
        raise NotText(message)
    return file


async def _over(
    files: Files, path: Path, content: str, *, base: FileText | None
) -> tuple[WriteResult, str | None]:
    """Write in the encoding that the file has, or in UTF-8 where that has no bytes for the new text."""
    try:
        return await files.write(path, content, base=base), None
    except NotText:
        if base is None or base.encoding == "utf-8":
            raise
    unicode = replace(base, encoding="utf-8", bom=False)
    return await files.write(path, content, base=unicode), base.encoding
