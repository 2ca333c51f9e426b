"""The tool edit: several edits in one call, and the shapes in which models send them."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.support.workspace.memory_files import MemoryFiles
from tests.tools.conftest import Bench, details, words


async def _edit(bench: Bench, old: str, new: str, *, path: str = "a.txt"):
    return await bench.run("edit", path=path, edits=[{"oldText": old, "newText": new}])


async def test_all_edits_are_looked_up_in_the_original(bench: Bench) -> None:
    path = bench.put("a.txt", "one\ntwo\nthree\n")
    outcome = await bench.run(
        "edit",
        path="a.txt",
        edits=[
            {"oldText": "three", "newText": "one"},
            {"oldText": "one", "newText": "two"},
            {"oldText": "two\n", "newText": ""},
        ],
    )
    assert words(outcome) == "Successfully replaced 3 block(s) in a.txt."
    assert path.read_text() == "two\none\n"
    assert details(outcome)["diff"] == "-1 one\n+1 two\n-2 two\n-3 three\n+2 one"


async def test_overlapping_edits_are_refused(bench: Bench) -> None:
    bench.put("a.txt", "one two three")
    outcome = await bench.run(
        "edit",
        path="a.txt",
        edits=[
            {"oldText": "two three", "newText": "x"},
            {"oldText": "zero", "newText": "x"},
        ],
    )
    assert words(outcome).startswith("Could not find edits[1] in a.txt.")
    outcome = await bench.run(
        "edit",
        path="a.txt",
        edits=[{"oldText": "two three", "newText": "x"}, {"oldText": "one two", "newText": "y"}],
    )
    assert words(outcome) == (
        "edits[0] and edits[1] overlap in a.txt. Merge them into one edit or target disjoint regions."
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"oldText": "a", "newText": "b"},
        {"edits": {"oldText": "a", "newText": "b"}},
        {"edits": '[{"oldText": "a", "newText": "b"}]'},
        {"edits": ['{"oldText": "a", "newText": "b"}']},
        {"edits": [], "oldText": "a", "newText": "b"},
        {"edits": None, "old_string": "a", "new_string": "b"},
        {"edits": [{"old_text": "a", "new_text": "b"}], "why": "because"},
    ],
)
async def test_other_shapes_are_understood(bench: Bench, arguments) -> None:
    path = bench.put("a.txt", "a")
    outcome = await bench.run("edit", file_path="a.txt", **arguments)
    assert words(outcome) == "Successfully replaced 1 block(s) in a.txt."
    assert path.read_text() == "b"
    assert bench.begun == [{"path": "a.txt", "edits": [{"oldText": "a", "newText": "b"}]}]


async def test_no_edits_are_refused(bench: Bench) -> None:
    outcome = await bench.run("edit", path="a.txt", edits=[])
    assert "Edit tool input is invalid. edits must contain at least one replacement." in words(
        outcome
    )


async def test_ten_thousand_matches_are_counted_and_more_are_not(bench: Bench) -> None:
    bench.put("a.txt", "a" * 10_000)
    assert words(await _edit(bench, "a", "b")).startswith("Found 10000 occurrences")
    bench.put("a.txt", "a" * 3_000_000)
    with anyio.fail_after(5):
        assert words(await _edit(bench, "a" * 5_000, "b")).startswith(
            "Found more than 10000 occurrences"
        )


async def test_a_file_under_another_spelling_is_edited(bench: Bench) -> None:
    path = bench.put("at 3.42\u202fPM.txt", "a")
    assert (await _edit(bench, "a", "b", path="at 3.42 PM.txt")).status == "ok"
    assert path.read_text() == "b"


async def test_the_file_tools_work_wherever_the_files_are(bench: Bench) -> None:
    root = Path("/elsewhere")
    files = MemoryFiles((root,), Path("/home/me"))
    bench.workspace = replace(bench.workspace, roots=(root,), files=files)
    await bench.run("write", path="sub/a.txt", content="one\r\ntwo\r\n")
    await _edit(bench, "two", "2", path="sub/a.txt")
    assert words(await bench.run("read", path="/elsewhere/sub/a.txt")) == "one\r\n2\r\n"
    assert files.contents() == {root / "sub/a.txt": b"one\r\n2\r\n"}
