"""Shows a Jupyter notebook as cells instead of as JSON: pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, decode
from agent_core.kernel.text import byte_count, format_size
from agent_core.kernel.values import Value

SUFFIX = ".ipynb"
OUTPUT_LINES = 40
OUTPUT_CHARS = 4_000
"""Limits of the text shown of one output: half from its beginning, half from its end."""
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
OLD_NAMES: Mapping[str, str] = {
    "text": "text/plain",
    "html": "text/html",
    "latex": "text/latex",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "svg": "image/svg+xml",
    "json": "application/json",
    "javascript": "application/javascript",
}
"""Kinds of output in notebook format 3, to MIME types."""


class Notebook(Value, frozen=True, kw_only=True):
    """A notebook as the model sees it."""

    text: str
    cell_count: int
    language: str | None
    query: str
    """`jq` path of the list of cells."""


def notebook_of(text: str, *, said: str) -> Notebook | None:
    """Write a notebook of format 3 or 4 as cells; None: the text is no notebook.

    Args:
        text: Of the file.
        said: A command-line word for the path.
    """
    root = as_object(_parsed(text))
    cells = _cells(root)
    if cells is None:
        return None
    language = _language(root)
    query = ".cells" if _is_list(root.get("cells")) else ".worksheets[0].cells"
    count = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
    lines = [
        f"[Notebook: {count}{', ' + language if language else ''}. The file is JSON: use bash to see it raw, cell 1 by `jq '{query}[0]' {said}`.]"
    ]
    for number, cell in enumerate(cells, start=1):
        lines += ["", *_cell_lines(as_object(cell), number)]
    return Notebook(
        text="\n".join(line.rstrip("\r") for line in lines) + "\n",
        cell_count=len(cells),
        language=language,
        query=query,
    )


def _parsed(text: str) -> JsonValue:
    """Read JSON; also the numbers that are none, which plots write into their outputs."""
    with suppress(ValueError):
        return decode(text)
    try:
        value: JsonValue = json.loads(text, parse_constant=lambda _: None)  # pyright: ignore[reportAny] - JSON by construction
    except (ValueError, RecursionError):
        return None
    return value


def _cells(root: JsonObject) -> Sequence[JsonValue] | None:
    """Find the cells; format 3 has them on sheets."""
    if _is_list(found := root.get("cells")):
        return _list(found)
    if not _is_list(sheets := root.get("worksheets")):
        return None
    return [cell for sheet in _list(sheets) for cell in _list(as_object(sheet).get("cells"))]


def _language(root: JsonObject) -> str | None:
    about = as_object(root.get("metadata"))
    names = [
        as_object(about.get("language_info")).get("name"),
        as_object(about.get("kernelspec")).get("language"),
        *(as_object(cell).get("language") for cell in _cells(root) or ()),
    ]
    return next((name for name in names if isinstance(name, str) and name), None)


def _cell_lines(cell: JsonObject, number: int) -> Iterator[str]:
    kind = cell.get("cell_type")
    kind = kind if isinstance(kind, str) else "unknown"
    labels = [f"cell {number}", kind]
    if kind == "code":
        count = cell.get("execution_count", cell.get("prompt_number"))
        labels.append(f"In [{count if isinstance(count, int) else ' '}]")
    elif kind == "heading":
        labels.append(f"level {cell.get('level', 1)}")
    yield f"[{', '.join(labels)}]"
    yield from _lines(_joined(cell.get("source", cell.get("input"))))
    for output in _list(cell.get("outputs")):
        yield from _output_lines(as_object(output))


def _output_lines(output: JsonObject) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield f"[output, {output.get('name') or output.get('stream') or 'stdout'}]"
            yield from _shortened(_joined(output.get("text")))
        case "error" | "pyerr":
            yield "[output, error]"
            trace = "\n".join(_joined(line) for line in _list(output.get("traceback")))
            short = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
            yield from _shortened(trace or short)
        case _:
            yield from _shown_data(output)


def _shown_data(output: JsonObject) -> Iterator[str]:
    """Show a result's plain text, and name its other forms."""
    kinds = as_object(output.get("data"))
    if "data" not in output:
        kinds = {OLD_NAMES[name]: value for name, value in output.items() if name in OLD_NAMES}
    count = output.get("execution_count", output.get("prompt_number"))
    place = f", Out [{count}]" if isinstance(count, int) else ""
    for kind, value in kinds.items():
        if kind == "text/plain":
            yield f"[output{place}]"
            yield from _shortened(_joined(value))
        else:
            text = _joined(value)
            size = f"{format_size(byte_count(text))}, " if text else ""
            yield f"[output{place}, {kind}, {size}not shown]"


def _shortened(text: str) -> list[str]:
    """Return a text's lines as a terminal would have left them, without the middle of a long one."""
    plain = ANSI.sub("", text)
    # A progress bar writes its line again and again.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in _lines(plain)]
    lines = [_cut(line) for line in lines]
    if len(lines) <= OUTPUT_LINES and sum(map(len, lines)) <= OUTPUT_CHARS:
        return lines
    return _without_middle(lines)


def _cut(line: str) -> str:
    half = OUTPUT_CHARS // 4
    if len(line) <= 2 * half:
        return line
    return f"{line[:half]} … {len(line) - 2 * half} characters left out … {line[-half:]}"


def _without_middle(lines: list[str]) -> list[str]:
    head = _within(lines)
    tail = _within(lines[len(head) :][::-1])[::-1]
    left = len(lines) - len(head) - len(tail)
    return [*head, f"[… {left} lines left out …]", *tail] if left else lines


def _within(lines: Sequence[str]) -> list[str]:
    """Keep the first lines within half of the limits; at least one."""
    kept: list[str] = []
    chars = 0
    for line in lines[: OUTPUT_LINES // 2]:
        chars += len(line)
        if kept and chars > OUTPUT_CHARS // 2:
            break
        kept.append(line)
    return kept


def _joined(value: JsonValue) -> str:
    """Return a text that the format writes as one string or as a list of lines."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping | int | float):
        return ""
    return "".join(part for part in value if isinstance(part, str))


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _is_list(value: JsonValue) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
