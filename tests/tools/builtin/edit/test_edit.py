"""The tool edit: finds what is meant, once, and changes nothing else."""

import time
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from typing_extensions import override

from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.tools.conftest import Bench, details, words

NOT_FOUND = "Could not find the exact text in a.txt. The old text must match exactly including all whitespace and newlines."


async def _edit(bench: Bench, old: str, new: str, *, path: str = "a.txt"):
    return await bench.run("edit", path=path, edits=[{"oldText": old, "newText": new}])


async def test_a_text_is_replaced(bench: Bench) -> None:
    path = bench.put("a.txt", "Hello, world!")
    outcome = await _edit(bench, "world", "testing")
    assert path.read_text() == "Hello, testing!"
    assert (outcome.status, words(outcome)) == (
        "ok",
        "Successfully replaced 1 block(s) in a.txt.",
    )
    assert details(outcome)["diff"] == "-1 Hello, world!\n+1 Hello, testing!"
    assert details(outcome)["patch"] == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n"
        "-Hello, world!\n\\ No newline at end of file\n"
        "+Hello, testing!\n\\ No newline at end of file\n"
    )
    assert (details(outcome)["path"], details(outcome)["first_changed_line"]) == (str(path), 1)
    assert (details(outcome)["additions"], details(outcome)["deletions"]) == (1, 1)


async def test_a_text_that_is_not_there_is_not_found(bench: Bench) -> None:
    path = bench.put("a.txt", "Hello, world!")
    outcome = await _edit(bench, "nonexistent", "x")
    assert (outcome.status, words(outcome)) == ("error", NOT_FOUND)
    assert path.read_text() == "Hello, world!"


async def test_a_text_that_is_there_several_times_is_refused(bench: Bench) -> None:
    path = bench.put("a.txt", "foo bar foo baz foo")
    outcome = await _edit(bench, "foo", "qux")
    assert words(outcome) == (
        "Found 3 occurrences of the text in a.txt. The text must be unique. "
        "Please provide more context to make it unique."
    )
    assert path.read_text() == "foo bar foo baz foo"


async def test_overlapping_occurrences_are_counted(bench: Bench) -> None:
    bench.put("a.txt", "foo\nfoo\nfoo\n")
    assert words(await _edit(bench, "foo\nfoo\n", "x")).startswith("Found 2 occurrences")


# As a model remembers the text


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(
            "line one   \nline two\n",
            "line one\n",
            "replaced\n",
            "replaced\nline two\n",
            id="trailing spaces",
        ),
        pytest.param(
            "say \u2018hello\u2019!\n",
            "'hello'",
            "'world'",
            "say 'world'!\n",
            id="curly single quotes",
        ),
        pytest.param(
            "say \u201cHello\u201d!\n",
            '"Hello"',
            '"World"',
            'say "World"!\n',
            id="curly double quotes",
        ),
        pytest.param("1\u20132 \u2014 3\u22124\n", "1-2 - 3-4", "5-6", "5-6\n", id="dashes"),
        pytest.param(
            "one\u00a0two\u3000three\n", "one two three", "1 2 3", "1 2 3\n", id="wide spaces"
        ),
        pytest.param("cafe\u0301 noir\n", "café noir", "thé", "thé\n", id="decomposed"),
        pytest.param("ﬁle \uff21\n", "file A", "x", "x\n", id="compatibility forms"),
    ],
)
async def test_a_text_is_found_as_it_is_remembered(bench, before, old, new, after) -> None:
    path = bench.put("a.txt", before)
    outcome = await _edit(bench, old, new)
    assert outcome.status == "ok"
    assert path.read_text() == after


async def test_what_is_not_replaced_keeps_its_bytes(bench: Bench) -> None:
    path = bench.put("a.txt", "keep\u00a0this \u2019 \nsay \u201cx\u201d   \nkeep\u2014that   \n")
    await _edit(bench, 'say "x"', "say y")
    assert path.read_text() == "keep\u00a0this \u2019 \nsay y   \nkeep\u2014that   \n"


async def test_an_exact_match_has_no_side_effects(bench: Bench) -> None:
    path = bench.put("a.txt", "plain ascii   \n\ttext \n")
    await _edit(bench, "ascii", "words")
    assert path.read_text() == "plain words   \n\ttext \n"


async def test_what_nobody_could_have_meant_is_not_found(bench: Bench) -> None:
    bench.put("a.txt", "some content\n")
    assert words(await _edit(bench, "completely different", "x")) == NOT_FOUND


async def test_what_is_remembered_alike_is_not_unique(bench: Bench) -> None:
    bench.put("a.txt", "hello   \nhello")
    assert words(await _edit(bench, "hello", "x")).startswith("Found 2 occurrences")
    bench.put("a.txt", "a \u2018x\u2019\nb 'x'\n")
    assert words(await _edit(bench, "'x'", "y")).startswith("Found 2 occurrences")


async def test_a_part_of_a_compatibility_character_is_not_found(bench: Bench) -> None:
    path = bench.put("a.txt", "\ufb01\n")
    assert words(await _edit(bench, "i\n", "x")).startswith("Could not find")
    assert path.read_text() == "\ufb01\n"


async def test_the_first_line_of_a_longer_text_is_pointed_at(bench: Bench) -> None:
    bench.put("a.txt", "one\ndef here():\n    pass\n")
    outcome = await _edit(bench, "def here():\n    return 1\n", "x")
    assert words(outcome) == (
        f"{NOT_FOUND} Its first line is at line 2: read the file from there and copy the text as it is now."
    )


# Line endings and marks


async def test_a_text_with_lf_is_found_in_a_file_with_crlf(bench: Bench) -> None:
    path = bench.put("a.txt", "one\r\ntwo\r\nthree\r\n")
    await _edit(bench, "one\ntwo\n", "1\n2\n3\n")
    assert path.read_bytes() == b"1\r\n2\r\n3\r\nthree\r\n"


async def test_crlf_stays(bench: Bench) -> None:
    path = bench.put("a.txt", "one\r\ntwo\r\nthree")
    await _edit(bench, "three", "3\n4")
    assert path.read_bytes() == b"one\r\ntwo\r\n3\r\n4"


async def test_lf_stays(bench: Bench) -> None:
    path = bench.put("a.txt", "one\ntwo\n")
    await _edit(bench, "one\r\ntwo", "1\r\n2")
    assert path.read_bytes() == b"1\n2\n"


async def test_lone_cr_stays(bench: Bench) -> None:
    path = bench.put("a.txt", "one\rtwo\rthree\r")
    await _edit(bench, "two\n", "2\n3\n")
    assert path.read_bytes() == b"one\r2\r3\rthree\r"


async def test_with_mixed_endings_every_line_keeps_its_own(bench: Bench) -> None:
    path = bench.put("a.txt", "a\r\nb\nc\r\n")
    await _edit(bench, "b\nc", "B\nC")
    assert path.read_bytes() == b"a\r\nB\nC\r\n"


async def test_the_same_text_with_other_endings_is_not_unique(bench: Bench) -> None:
    bench.put("a.txt", "hello\r\nworld\n---\nhello\nworld\n")
    assert words(await _edit(bench, "hello\nworld", "x")).startswith("Found 2 occurrences")


async def test_mark_and_crlf_stay(bench: Bench) -> None:
    path = bench.put("a.txt", "\ufeffone\r\ntwo\r\n")
    await _edit(bench, "one", "1")
    assert path.read_bytes() == "\ufeff1\r\ntwo\r\n".encode()


async def test_utf_16_stays(bench: Bench) -> None:
    path = bench.put("a.txt", "\ufeffgrün\r\n".encode("utf-16-le"))
    await _edit(bench, "grün", "blau 🌍")
    assert path.read_bytes() == "\ufeffblau 🌍\r\n".encode("utf-16-le")


# Safety


async def test_an_empty_old_text_is_refused(bench: Bench) -> None:
    path = bench.put("a.txt", "")
    assert words(await _edit(bench, "", "content")) == "oldText must not be empty in a.txt."
    assert path.read_bytes() == b""


@pytest.mark.parametrize("line", ["some line of ascii text\n", "eine Zeile mit ümlaut \n"])
async def test_ten_megabytes_are_edited_in_five_seconds(bench: Bench, line: str) -> None:
    text = line * (10_000_000 // len(line))
    path = bench.put("a.txt", text + "needle\n" + text[: len(line) * 10])
    begun_s = time.monotonic()
    outcome = await _edit(bench, "needle", "thread")
    assert outcome.status == "ok"
    assert time.monotonic() - begun_s < 5
    assert path.read_text() == text + "thread\n" + text[: len(line) * 10]


async def test_a_replacement_by_itself_changes_nothing(bench: Bench) -> None:
    bench.put("a.txt", "hello")
    outcome = await _edit(bench, "hello", "hello")
    assert (outcome.status, words(outcome)) == (
        "error",
        "No changes made to a.txt. The replacement produced identical content.",
    )


async def test_edits_at_the_same_time_all_land(bench: Bench) -> None:
    path = bench.put("a.txt", "".join(f"<{n}>\n" for n in range(3)) + "x\n" * 10_000)
    outcomes = []

    async def edit(number: int) -> None:
        outcomes.append(await _edit(bench, f"<{number}>", f"[{number}]"))

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(edit, number)
    assert [outcome.status for outcome in outcomes] == ["ok"] * 3
    assert path.read_text() == "[0]\n[1]\n[2]\n" + "x\n" * 10_000


class _ChangingFiles(DiskFiles):
    """A disk on which somebody always comes first."""

    def _come_first(self, path: Path) -> None:
        with path.open("ab") as file:
            file.write(b"more\n")

    @override
    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        await to_thread.run_sync(self._come_first, path)
        return await super().write(path, text, base=base)


async def test_a_file_that_never_holds_still_is_told_to_be_stale(bench: Bench) -> None:
    path = bench.put("a.txt", "one\n")
    bench.workspace = replace(bench.workspace, files=_ChangingFiles((bench.root,), bench.root))
    outcome = await _edit(bench, "one", "1")
    assert (outcome.status, words(outcome)) == (
        "error",
        f"{path} changed since it was read: nothing was written. Read it again.",
    )
    assert path.read_text() == "one\nmore\nmore\nmore\n"


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"


async def test_a_binary_file_is_protected(bench: Bench) -> None:
    path = bench.put("a.txt", PNG)
    outcome = await _edit(bench, "IHDR", "XXXX")
    assert (outcome.status, words(outcome)) == (
        "error",
        "Cannot edit a.txt: it is a binary file (33B), not text. Use bash with a program for its format.",
    )
    assert path.read_bytes() == PNG


async def test_a_path_that_leads_out_is_refused(bench: Bench) -> None:
    outcome = await _edit(bench, "root", "hacked", path="../../etc/passwd")
    assert outcome.status == "error"
    assert "'../../etc/passwd' leads outside the workspace" in words(outcome)


async def test_a_folder_is_refused(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    outcome = await _edit(bench, "x", "y", path="sub")
    assert outcome.status == "error"
    assert "Is a directory" in words(outcome)


async def test_a_missing_file_is_named(bench: Bench) -> None:
    outcome = await _edit(bench, "x", "y", path="gone.txt")
    assert words(outcome).startswith(f"File not found: {bench.root / 'gone.txt'}")


async def test_tilde_is_the_home_folder(home_bench: Bench) -> None:
    path = home_bench.put("test_dir/hello.txt", "a")
    assert (await _edit(home_bench, "a", "b", path="~/test_dir/hello.txt")).status == "ok"
    assert path.read_text() == "b"


@pytest.mark.parametrize("path", [None, 123, ["a"], True])
async def test_an_ill_typed_path_is_told(bench: Bench, path) -> None:
    outcome = await bench.run("edit", path=path, edits=[{"oldText": "x", "newText": "y"}])
    assert outcome.status == "error"
    assert words(outcome).startswith('Validation failed for tool "edit":\n  - path: ')
    assert bench.begun == []


async def test_the_diff_has_the_numbers_of_the_lines(bench: Bench) -> None:
    lines = [f"line {n}\n" for n in range(1, 501)]
    lines[337] = "target\n"
    bench.put("a.txt", "".join(lines))
    outcome = await _edit(bench, "target", "replaced")
    assert details(outcome)["first_changed_line"] == 338
    assert details(outcome)["diff"] == (
        "     ...\n"
        " 334 line 334\n 335 line 335\n 336 line 336\n 337 line 337\n"
        "-338 target\n"
        "+338 replaced\n"
        " 339 line 339\n 340 line 340\n 341 line 341\n 342 line 342\n"
        "     ..."
    )
