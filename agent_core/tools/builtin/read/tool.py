"""The tool `read`: a file's text by pages, from the editor's buffer where it is open; or an image."""

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from anyio import CapacityLimiter
from pydantic import Field, field_validator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import FileTooLarge, NotText
from agent_core.kernel.text import DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import ArgumentCount, ModelTool, ToolArguments, schema_of
from agent_core.tools.builtin.read.page import RequestedLines, page_of, page_result
from agent_core.tools.builtin.search.common import PATH_NAMES, path_said
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec
from agent_core.workspace import FileBytes, FileText

LARGE_CHARS = 1_000_000
"""A longer text is cut in a thread."""
NOTEBOOK_LIMIT_BYTES = 32 * 1024 * 1024
"""A larger notebook is read as the text that it is."""
IMAGES_AT_A_TIME = 1
EMPTY = "The file is empty."


class ReadArguments(ToolArguments):
    """Arguments of `read`."""

    other_names: ClassVar[Mapping[str, str]] = PATH_NAMES

    path: str = Field(description="The file, relative to the workspace or absolute")
    offset: ArgumentCount | None = Field(
        default=None, description="The line to begin with, from 1 (default: 1)"
    )
    limit: ArgumentCount | None = Field(default=None, description="How many lines to read at most")

    @field_validator("offset", mode="before")
    @classmethod
    def _from_one(cls, value: object) -> object:
        # Some models count from 0.
        return 1 if value in {0, "0"} and not isinstance(value, bool) else value

    @property
    def wanted(self) -> RequestedLines:
        """The lines to be read."""
        return RequestedLines(first=self.offset or 1, count=self.limit)


def read_tool() -> ModelTool[ReadArguments]:
    """Make the tool. It works on one image at a time, however many calls there are."""
    limit = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="read",
            description=f"Read a text file, an image (png, jpeg, gif, webp, bmp) or a Jupyter notebook. Gives at most {DEFAULT_MAX_LINES} lines or {limit}, whichever comes first; use offset and limit for the other parts of a large file. Unsaved changes in the editor are seen.",
            parameters=schema_of(ReadArguments),
            kind="read",
            parallel_safe=True,
            snippet="Read a file",
            guidelines=(
                "Use read to look at files instead of cat or sed.",
                "Read a file before you edit it.",
            ),
        ),
        arguments=ReadArguments,
        titled=_title,
        execute=partial(_read, CapacityLimiter(IMAGES_AT_A_TIME)),
    )


def _title(arguments: JsonObject) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    lines = ""
    if isinstance(offset, int) and isinstance(limit, int):
        lines = f":{offset}-{offset + limit - 1}"
    elif isinstance(offset, int):
        lines = f":{offset}"
    return f"read {path_said(arguments)}{lines}"


async def _read(
    room: CapacityLimiter, arguments: ReadArguments, context: ToolContext
) -> ToolResult:
    from agent_core.tools.builtin.read.binary_file import bytes_result  # noqa: PLC0415 - at first use
    from agent_core.tools.builtin.read.image import image_rules  # noqa: PLC0415 - at first use
    from agent_core.tools.builtin.read.page_stream import WHOLE_LIMIT_BYTES  # noqa: PLC0415 - at first use

    path = await context.files.resolve(arguments.path, "read")
    limit_bytes = NOTEBOOK_LIMIT_BYTES if _is_notebook(path) else WHOLE_LIMIT_BYTES
    try:
        file = await context.files.read(path, limit_bytes=limit_bytes)
    except FileTooLarge:
        streamed = await _read_large(arguments, context, path)
        if isinstance(streamed, ToolResult):
            return streamed
        file = streamed
    if isinstance(file, FileBytes):
        rules = image_rules(context.options)
        return await bytes_result(arguments.path, file, rules=rules, room=room)
    context.seen.put(path, file.text)
    if _is_notebook(path):
        return await run_in_thread(_notebook_page, arguments, file)
    if len(file.text) > LARGE_CHARS:
        return await run_in_thread(_text_page, arguments, file)
    return _text_page(arguments, file)


async def _read_large(
    arguments: ReadArguments, context: ToolContext, path: Path
) -> ToolResult | FileText | FileBytes:
    """Read a page of a large text, or all of a large image."""
    from agent_core.tools.builtin.read.image import READ_LIMIT_BYTES as IMAGE_LIMIT_BYTES  # noqa: PLC0415 - at first use
    from agent_core.tools.builtin.read.page_stream import LargeImage, read_streamed  # noqa: PLC0415 - at first use

    found = await read_streamed(context.files, path, arguments.wanted, said=arguments.path)
    if isinstance(found, LargeImage):
        try:
            return await context.files.read(path, limit_bytes=IMAGE_LIMIT_BYTES)
        except FileTooLarge as error:
            message = f"{arguments.path} is an image ({found.kind}, {format_size(found.size)}) that is too large to be shown: the most is {format_size(IMAGE_LIMIT_BYTES)}. Use bash to make a smaller copy."
            raise NotText(message) from error
    facts: dict[str, JsonValue] = {
        "path": str(path),
        "source": "disk",
        "sha256": found.sha256,
        "version": None,
        "dirty": False,
        "encoding": found.encoding,
        "bom": found.bom,
    }
    note = "The notebook is too large to be shown as cells." if _is_notebook(path) else ""
    if found.shrank:
        note = "The file became shorter while it was read; read it again."
    return page_result(found.page, facts=facts, whole_line=_sed(arguments), note=note)


def _text_page(arguments: ReadArguments, file: FileText, note: str = "") -> ToolResult:
    note = note if file.text else EMPTY
    page = page_of(file.text, arguments.wanted)
    return page_result(page, facts=_facts(file), whole_line=_sed(arguments), note=note)


def _notebook_page(arguments: ReadArguments, file: FileText) -> ToolResult:
    from agent_core.tools.builtin.read.notebook import notebook_of  # noqa: PLC0415 - at first use

    name = shlex.quote(arguments.path)
    notebook = notebook_of(file.text, said=name)
    if notebook is None:
        note = "This is not the JSON of a notebook: it is shown as it is."
        return _text_page(arguments, file, note)
    facts: dict[str, JsonValue] = {
        **_facts(file),
        "notebook": True,
        "cell_count": notebook.cell_count,
        "language": notebook.language,
    }
    page = page_of(notebook.text, arguments.wanted)
    return page_result(page, facts=facts, whole_line=f"jq '{notebook.query}' {name}")


def _facts(file: FileText) -> dict[str, JsonValue]:
    return {
        "path": str(file.path),
        "source": file.source,
        "sha256": file.sha256,
        "version": file.version,
        "dirty": file.dirty,
        "encoding": file.encoding,
        "bom": file.bom,
    }


def _is_notebook(path: Path) -> bool:
    from agent_core.tools.builtin.read.notebook import SUFFIX as NOTEBOOK_SUFFIX  # noqa: PLC0415 - at first use

    return path.suffix.lower() == NOTEBOOK_SUFFIX


def _sed(arguments: ReadArguments) -> str:
    return f"sed -n '{arguments.wanted.first}p' {shlex.quote(arguments.path)}"
