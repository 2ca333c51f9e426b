"""The tool ls: what is in a folder."""

import os

import pytest

from agent_core.kernel import JsonValue
from tests.tools.conftest import Bench, details, words


async def test_hidden_files_and_folders_are_listed(bench: Bench) -> None:
    bench.put(".hidden-file", "12345")
    (bench.root / ".hidden-dir").mkdir()
    bench.put("plain/inside", "not counted")
    outcome = await bench.run("ls")
    assert words(outcome) == ".hidden-dir/\n.hidden-file\nplain/"
    assert details(outcome) == {
        "path": str(bench.root),
        "entry_count": 3,
        "total_size": 5,
        "limit_reached": False,
        "truncated": False,
    }


async def test_an_empty_folder_is_said_to_be(bench: Bench) -> None:
    outcome = await bench.run("ls", path=".")
    assert (outcome.status, words(outcome)) == ("ok", "(empty directory)")
    assert details(outcome)["entry_count"] == 0


async def test_names_are_sorted_whatever_their_case(bench: Bench) -> None:
    for name in ("Zebra.txt", "apple.txt", "Banana.txt", "a", "A"):
        bench.put(name, "")
    outcome = await bench.run("ls")
    assert words(outcome).split() == ["A", "a", "apple.txt", "Banana.txt", "Zebra.txt"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("a.txt", "Not a directory: {root}/a.txt", id="file"),
        pytest.param("gone/deep", "Path not found: {root}/gone/deep", id="missing"),
        pytest.param("pipe", "Not a file or folder: {root}/pipe", id="device"),
    ],
)
async def test_what_is_no_folder_is_named(bench: Bench, path: str, told: str) -> None:
    bench.put("a.txt", "")
    os.mkfifo(bench.root / "pipe")
    outcome = await bench.run("ls", path=path)
    assert (outcome.status, words(outcome)) == ("error", told.format(root=bench.root))


async def test_a_path_outside_is_refused(bench: Bench) -> None:
    outcome = await bench.run("ls", path="/")
    assert outcome.status == "error"
    assert words(outcome).startswith("'/' leads outside the workspace")


async def test_of_many_entries_the_first_are_listed_and_the_rest_counted(bench: Bench) -> None:
    for n in range(600):
        bench.put(f"{n:03}", "x")
    outcome = await bench.run("ls")
    listed, _, notice = words(outcome).rpartition("\n\n")
    assert listed.split() == [f"{n:03}" for n in range(500)]
    assert notice == "[500 entries limit reached. Use limit=1000 for more. 100 more entries]"
    assert details(outcome) == {
        "path": str(bench.root),
        "entry_count": 600,
        "total_size": 600,
        "limit_reached": True,
        "truncated": True,
    }


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (3, "a\nb\nc"),
        ("2", "a\nb\n\n[2 entries limit reached. Use limit=4 for more. 1 more entry]"),
        (0, "a\n\n[1 entries limit reached. Use limit=2 for more. 2 more entries]"),
        (-5, "a\n\n[1 entries limit reached. Use limit=2 for more. 2 more entries]"),
    ],
)
async def test_the_limit_is_kept(bench: Bench, limit: JsonValue, told: str) -> None:
    for name in "abc":
        bench.put(name, "")
    assert words(await bench.run("ls", limit=limit)) == told


async def test_more_than_fits_is_cut(bench: Bench) -> None:
    for n in range(300):
        bench.put(f"{n:03}{'x' * 240}", "")
    outcome = await bench.run("ls")
    listed, _, notice = words(outcome).rpartition("\n\n")
    assert notice == "[50.0KB limit reached]"
    assert listed.split() == [f"{n:03}{'x' * 240}" for n in range(209)]
    assert details(outcome)["truncation"]["output_lines"] == 209


async def test_links_count_as_what_they_lead_to(bench: Bench) -> None:
    bench.put("real/a", "")
    (bench.root / "folder").symlink_to("real")
    (bench.root / "file").symlink_to("real/a")
    (bench.root / "gone").symlink_to("nowhere")
    assert words(await bench.run("ls")).split() == ["file", "folder/", "real/"]


async def test_odd_names_are_one_line_each(bench: Bench) -> None:
    bench.put("new\nline", "")
    with open(bytes(bench.root) + b"/bad\xff", "wb"):  # noqa: ASYNC230,PTH123 - a name that is no text
        pass
    listed = words(await bench.run("ls")).split("\n")
    assert (len(listed), listed[1]) == (2, r"new\nline")
    assert listed[0].startswith("bad\ufffd")


@pytest.mark.parametrize("path", [42, [], {"a": 1}, True])
async def test_a_path_of_another_type_is_refused(bench: Bench, path: JsonValue) -> None:
    outcome = await bench.run("ls", path=path)
    assert outcome.status == "error"
    assert words(outcome).startswith(
        'Validation failed for tool "ls":\n  - path: Input should be a valid string\n'
    )
