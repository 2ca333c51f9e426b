"""The tool read on notebooks: cells and short outputs instead of JSON."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from typing_extensions import override

from agent_core.tools.builtin.read.notebook import notebook_of
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.port import READ_LIMIT_BYTES
from tests.tools.conftest import Bench, details, words

ABOUT = "The file is JSON: use bash to see it raw, cell 1 by `jq '{}[0]' a.ipynb`.]\n"


def code(source: object, *outputs: object, count: int | None = 1) -> dict[str, object]:
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {},
        "source": source,
        "outputs": list(outputs),
    }


def stream(text: object, name: str = "stdout") -> dict[str, object]:
    return {"output_type": "stream", "name": name, "text": text}


def notebook(*cells: object, language: str | None = "python") -> str:
    about = {"language_info": {"name": language}} if language else {}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5})


FORMAT_4 = notebook(
    {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "\n", "Words."]},
    code(["import os\n", "print(1)\n", "2"], stream(["1\n"]), count=5),
    code("x", count=None),
    code(
        "plot()",
        {
            "output_type": "execute_result",
            "execution_count": 7,
            "data": {"text/plain": ["<Figure>"], "text/html": "<b>x</b>"},
        },
        {"output_type": "display_data", "data": {"image/png": "iVBORw0K" * 1000}},
        {
            "output_type": "error",
            "ename": "ValueError",
            "evalue": "no",
            "traceback": [
                "\x1b[0;31mValueError\x1b[0m: no",
                "\x1b]8;;http://x\x07here\x1b]8;;\x07",
            ],
        },
        stream("careful\n", "stderr"),
        count=7,
    ),
    {"cell_type": "raw", "source": "raw words"},
)
SHOWN_4 = (
    "[Notebook: 5 cells, python. "
    + ABOUT.format(".cells")
    + """
[cell 1, markdown]
# Title

Words.

[cell 2, code, In [5]]
import os
print(1)
2
[output, stdout]
1

[cell 3, code, In [ ]]
x

[cell 4, code, In [7]]
plot()
[output, Out [7]]
<Figure>
[output, Out [7], text/html, 8B, not shown]
[output, image/png, 7.8KB, not shown]
[output, error]
ValueError: no
here
[output, stderr]
careful

[cell 5, raw]
raw words
"""
)
FORMAT_3 = json.dumps(
    {
        "nbformat": 3,
        "metadata": {"name": ""},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": ["Old"]},
                    {
                        "cell_type": "code",
                        "language": "julia",
                        "prompt_number": 3,
                        "input": ["1 + 1"],
                        "outputs": [
                            {"output_type": "pyout", "prompt_number": 3, "text": ["2"]},
                            {"output_type": "display_data", "png": "AAAA"},
                            {"output_type": "stream", "stream": "stderr", "text": "hm"},
                            {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []},
                        ],
                    },
                ]
            }
        ],
    }
)
SHOWN_3 = (
    "[Notebook: 2 cells, julia. "
    + ABOUT.format(".worksheets[0].cells")
    + """
[cell 1, heading, level 2]
Old

[cell 2, code, In [3]]
1 + 1
[output, Out [3]]
2
[output, image/png, 4B, not shown]
[output, stderr]
hm
[output, error]
E: v
"""
)


@pytest.mark.parametrize(
    ("text", "shown", "language"),
    [
        (FORMAT_4, SHOWN_4, "python"),
        (FORMAT_3, SHOWN_3, "julia"),
        (notebook(language=None), "[Notebook: 0 cells. " + ABOUT.format(".cells"), None),
    ],
    ids=["format 4", "format 3", "no cells"],
)
async def test_a_notebook_is_shown_as_cells(bench: Bench, text, shown, language) -> None:
    path = bench.put("a.ipynb", text)
    outcome = await bench.run("read", path="a.ipynb")
    assert (outcome.status, words(outcome)) == ("ok", shown)
    assert details(outcome) == {
        "path": str(path),
        "source": "disk",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "version": None,
        "dirty": False,
        "encoding": "utf-8",
        "bom": False,
        "notebook": True,
        "cell_count": shown.count("[cell "),
        "language": language,
        "line_count": shown.count("\n"),
        "first_line": 1,
        "last_line": shown.count("\n"),
        "truncated": False,
    }


async def test_the_cells_are_read_by_pages(bench: Bench) -> None:
    bench.put("a.ipynb", FORMAT_4)
    lines = SHOWN_4.count("\n")
    outcome = await bench.run("read", path="a.ipynb", offset=8, limit=2)
    assert words(outcome) == (
        f"[cell 2, code, In [5]]\nimport os\n\n[{lines - 9} more lines in file. Use offset=10 to continue.]"
    )


async def test_a_long_notebook_says_how_to_go_on(bench: Bench) -> None:
    bench.put("a.ipynb", notebook(*(code("x") for _ in range(1000))))
    outcome = await bench.run("read", path="a.ipynb")
    assert words(outcome).endswith(
        "\n\n[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]"
    )
    assert details(outcome)["truncation"]["total_lines"] == 3001


async def test_a_cell_that_is_one_endless_line_is_left_to_bash(bench: Bench) -> None:
    bench.put("a b.ipynb", notebook(code("x" * 60_000)))
    outcome = await bench.run("read", path="a b.ipynb", offset=4)
    assert words(outcome) == (
        "[Line 4 is 58.6KB, exceeds 50.0KB limit. "
        "Use bash: jq '.cells' 'a b.ipynb' | head -c 51200]"
    )


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("".join(f"{n}\n" for n in range(40)), [str(n) for n in range(40)]),
        (
            "".join(f"{n}\n" for n in range(1000)),
            [
                *(str(n) for n in range(20)),
                "[… 960 lines left out …]",
                *(str(n) for n in range(980, 1000)),
            ],
        ),
        ("x" * 9_000, ["x" * 1_000 + " … 7000 characters left out … " + "x" * 1_000]),
        ("\r 10%\r 50%\r100%\ndone\r\n", ["100%", "done"]),
        ("\x1b[1;32mgreen\x1b[0m\n", ["green"]),
        (
            "\n".join("y" * 1_900 for _ in range(5)),
            ["y" * 1_900, "[… 3 lines left out …]", "y" * 1_900],
        ),
    ],
    ids=["short", "many lines", "long line", "progress", "colours", "many characters"],
)
async def test_an_output_is_shortened(bench: Bench, printed, shown) -> None:
    bench.put("a.ipynb", notebook(code("x", stream(printed))))
    outcome = await bench.run("read", path="a.ipynb")
    assert words(outcome).splitlines()[5:] == shown


async def test_pictures_in_a_notebook_cost_nothing(bench: Bench) -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 9_000_000}}
    bench.put("a.ipynb", notebook(code("plot()", picture)))
    outcome = await bench.run("read", path="a.ipynb")
    assert "[output, image/png, 8.6MB, not shown]" in words(outcome)


async def test_a_huge_notebook_is_read_as_the_text_that_it_is(bench: Bench) -> None:
    path = bench.put("a.ipynb", "[\n" + notebook() + "\n]\n")
    with path.open("ab") as file:
        file.write(b" " * 33 * 1024 * 1024)
    outcome = await bench.run("read", path="a.ipynb", limit=1)
    assert words(outcome) == (
        "[\n\n[3 more lines in file. Use offset=2 to continue.]"
        "\n\n[The notebook is too large to be shown as cells.]"
    )


@pytest.mark.parametrize(
    "text",
    ['{"cells": [', "words\n", "[]", "{}", '{"cells": 3}', "null", '{"a": NaN}'],
)
async def test_what_is_no_notebook_is_shown_as_it_is(bench: Bench, text) -> None:
    bench.put("a.ipynb", text)
    outcome = await bench.run("read", path="a.ipynb")
    assert (outcome.status, words(outcome)) == (
        "ok",
        f"{text}\n\n[This is not the JSON of a notebook: it is shown as it is.]",
    )
    assert "notebook" not in details(outcome)


async def test_numbers_that_are_none_do_not_hide_the_cells(bench: Bench) -> None:
    plot = {"output_type": "display_data", "data": {"application/x": {"y": [1.5, float("nan")]}}}
    bench.put("a.ipynb", notebook(code("plot() # \ud800", plot)))
    assert words(await bench.run("read", path="a.ipynb")).endswith(
        "plot() # \ufffd\n[output, application/x, not shown]\n"
    )


async def test_an_empty_notebook_file_says_that_it_is_empty(bench: Bench) -> None:
    bench.put("a.ipynb", "")
    assert words(await bench.run("read", path="a.ipynb")) == "[The file is empty.]"


class _OpenNotebook(DiskFiles):
    """A disk with one notebook open in an editor."""

    @override
    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        text = notebook(code("unsaved"))
        return FileText(
            path=path, text=text, source="buffer", sha256="0" * 64, version=3, dirty=True
        )


async def test_an_unsaved_notebook_is_read_from_the_editor(bench: Bench) -> None:
    bench.put("a.ipynb", notebook(code("saved")))
    files = _OpenNotebook((bench.root,), bench.root)
    bench.workspace = replace(bench.workspace, files=files)
    outcome = await bench.run("read", path="a.ipynb")
    assert words(outcome).endswith("\n[cell 1, code, In [1]]\nunsaved\n")
    assert {name: details(outcome)[name] for name in ("source", "version", "dirty")} == {
        "source": "buffer",
        "version": 3,
        "dirty": True,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "cells",
                    "source",
                    "outputs",
                    "data",
                    "text",
                    "output_type",
                    "cell_type",
                    "png",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(cells=st.lists(JSON, max_size=4), about=JSON)
def test_no_json_breaks_the_cells(cells, about) -> None:
    shown = notebook_of(json.dumps({"cells": cells, "metadata": about}), said="a")
    assert shown is not None
    assert shown.cell_count == len(cells)
    assert shown.text.count("[cell ") >= len(cells)
