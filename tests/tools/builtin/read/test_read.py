"""The tool read: pages of text with notices that say how to go on."""

import base64
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from typing_extensions import override

from agent_core.messages import Image
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.port import READ_LIMIT_BYTES
from tests.tools.conftest import Bench, details, words

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _numbered(count: int) -> str:
    return "".join(f"line {n}\n" for n in range(1, count + 1))


async def test_a_small_file_comes_whole(bench: Bench) -> None:
    path = bench.put("a.txt", "one\ntwo\nthree\n")
    outcome = await bench.run("read", path="a.txt")
    assert (outcome.status, words(outcome)) == ("ok", "one\ntwo\nthree\n")
    assert details(outcome) == {
        "path": str(path),
        "source": "disk",
        "sha256": hashlib.sha256(b"one\ntwo\nthree\n").hexdigest(),
        "version": None,
        "dirty": False,
        "encoding": "utf-8",
        "bom": False,
        "line_count": 3,
        "first_line": 1,
        "last_line": 3,
        "truncated": False,
    }


async def test_a_missing_file_is_named(bench: Bench) -> None:
    outcome = await bench.run("read", path="gone.txt")
    assert (outcome.status, words(outcome)) == (
        "error",
        f"File not found: {bench.root / 'gone.txt'} (ENOENT). Look for the right name first.",
    )


async def test_an_empty_file_says_that_it_is_empty(bench: Bench) -> None:
    bench.put("a.txt", "")
    outcome = await bench.run("read", path="a.txt")
    assert (outcome.status, words(outcome)) == ("ok", "[The file is empty.]")


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("arguments", "page", "notice"),
    [
        ({"offset": 51}, (51, 100), ""),
        ({"limit": 10}, (1, 10), "\n\n[90 more lines in file. Use offset=11 to continue.]"),
        (
            {"offset": 41, "limit": 20},
            (41, 60),
            "\n\n[40 more lines in file. Use offset=61 to continue.]",
        ),
        ({"offset": 1}, (1, 100), ""),
        ({"offset": 0}, (1, 100), ""),
        ({"offset": "1"}, (1, 100), ""),
        ({"offset": 100}, (100, 100), ""),
        ({"offset": 91, "limit": 10}, (91, 100), ""),
        ({"offset": 91, "limit": 1000}, (91, 100), ""),
        ({"offset": None, "limit": None}, (1, 100), ""),
    ],
)
async def test_a_page_is_what_was_asked_for(bench, arguments, page, notice, end) -> None:
    first, last = page
    bench.put("a.txt", _numbered(100).removesuffix("\n") + end)
    outcome = await bench.run("read", path="a.txt", **arguments)
    lines = "\n".join(f"line {n}" for n in range(first, last + 1))
    assert words(outcome) == lines + (notice or end)
    assert (details(outcome)["first_line"], details(outcome)["last_line"]) == (first, last)


@pytest.mark.parametrize(
    ("text", "wanted", "shown"),
    [
        ("\n\nx\n", {"limit": 1}, "[2 more lines in file. Use offset=2 to continue.]"),
        ("\n\nx\n", {"limit": 2}, "\n\n\n[1 more lines in file. Use offset=3 to continue.]"),
        ("a\n\nx\n", {"limit": 2}, "a\n\n\n[1 more lines in file. Use offset=3 to continue.]"),
        ("a\n\n", {"offset": 2, "limit": 1}, "\n"),
    ],
    ids=["only", "both", "last", "at the end"],
)
async def test_an_empty_line_is_a_line(bench: Bench, text, wanted, shown) -> None:
    bench.put("a.txt", text)
    outcome = await bench.run("read", path="a.txt", **wanted)
    assert words(outcome) == shown
    first = wanted.get("offset", 1)
    assert details(outcome)["last_line"] == first + wanted["limit"] - 1


async def test_an_offset_beyond_the_end_is_an_error(bench: Bench) -> None:
    bench.put("a.txt", "1\n2\n3\n")
    outcome = await bench.run("read", path="a.txt", offset=100)
    assert (outcome.status, words(outcome)) == (
        "error",
        "Offset 100 is beyond end of file (3 lines total)",
    )


@pytest.mark.parametrize("end", ["", "\n"])
async def test_two_thousand_lines_are_the_most(bench: Bench, end: str) -> None:
    bench.put("a.txt", _numbered(2500).removesuffix("\n") + end)
    outcome = await bench.run("read", path="a.txt")
    assert words(outcome).endswith(
        "line 2000\n\n[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]"
    )
    cut = details(outcome)["truncation"]
    assert (cut["truncated"], cut["truncated_by"], cut["total_lines"], cut["output_lines"]) == (
        True,
        "lines",
        2500,
        2000,
    )
    rest = await bench.run("read", path="a.txt", offset=2001)
    assert words(rest).startswith("line 2001\n")


async def test_fifty_kilobytes_are_the_most(bench: Bench) -> None:
    bench.put("a.txt", "\n".join("x" * 200 for _ in range(500)))
    outcome = await bench.run("read", path="a.txt")
    assert words(outcome).endswith(
        "\n\n[Showing lines 1-254 of 500 (50.0KB limit). Use offset=255 to continue.]"
    )
    assert len(words(outcome).partition("\n\n[")[0]) <= 51_200


async def test_a_line_that_is_too_long_is_left_to_bash(bench: Bench) -> None:
    bench.put("a b.txt", "x" * 60_000 + "\nshort\n")
    outcome = await bench.run("read", path="a b.txt")
    assert words(outcome) == (
        "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' 'a b.txt' | head -c 51200]"
    )
    assert details(outcome)["truncation"]["first_line_exceeds_limit"] is True


async def test_an_image_is_known_by_its_bytes(bench: Bench) -> None:
    path = bench.put("picture.txt", PNG)
    outcome = await bench.run("read", path="picture.txt")
    assert words(outcome) == "Read image file [image/png]"
    assert outcome.result.content[1] == Image(mime="image/png", data=base64.b64encode(PNG).decode())
    assert details(outcome)["path"] == str(path)


async def test_a_text_named_like_an_image_is_a_text(bench: Bench) -> None:
    bench.put("a.png", "just words\n")
    outcome = await bench.run("read", path="a.png")
    assert words(outcome) == "just words\n"
    assert len(outcome.result.content) == 1


async def test_a_binary_file_is_not_shown(bench: Bench) -> None:
    bench.put("a.bin", b"\x7fELF\0\0")
    outcome = await bench.run("read", path="a.bin")
    assert outcome.status == "error"
    assert words(outcome) == (
        "a.bin is a binary file (6B), not text. Use bash: `file a.bin` tells what it is, "
        "`xxd a.bin | head` shows bytes, `strings a.bin` its words."
    )


async def test_through_a_link_the_target_is_read(bench: Bench) -> None:
    path = bench.put("real.txt", "words")
    (bench.root / "link.txt").symlink_to("real.txt")
    outcome = await bench.run("read", path="link.txt")
    assert (words(outcome), details(outcome)["path"]) == ("words", str(path))


async def test_what_the_system_refuses_is_said(plain_bench: Bench) -> None:
    path = plain_bench.put("a.txt", "secret")
    path.chmod(0o000)
    outcome = await plain_bench.run("read", path="a.txt")
    assert (outcome.status, words(outcome)) == (
        "error",
        f"Permission denied: {path} (EACCES). Use another file, or ask the user to change its permissions.",
    )


async def test_names_with_spaces_and_other_scripts_are_read(bench: Bench) -> None:
    bench.put("截图 2026-02-11 下午3.42.10.png", PNG)
    outcome = await bench.run("read", path="截图 2026-02-11 下午3.42.10.png")
    assert outcome.status == "ok"


async def test_tilde_is_the_home_folder(home_bench: Bench) -> None:
    home_bench.put("test.txt", "at home")
    assert words(await home_bench.run("read", path="~/test.txt")) == "at home"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": 42},
        {"path": None},
        {},
        {"path": "a", "offset": -1},
        {"path": "a", "limit": 0},
        {"path": "a", "limit": "many"},
        {"path": "a", "offset": 1.5},
        {"path": "a", "offset": True},
    ],
)
async def test_ill_typed_arguments_are_told(bench: Bench, arguments) -> None:
    outcome = await bench.call("read", arguments)
    assert outcome.status == "error"
    assert words(outcome).startswith('Validation failed for tool "read":\n  - ')
    assert "\n\nReceived arguments:\n{" in words(outcome)


async def test_a_folder_is_refused(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    assert "Is a directory" in words(await bench.run("read", path="sub"))


async def test_a_path_that_leads_out_is_refused(bench: Bench) -> None:
    outcome = await bench.run("read", path="../../etc/passwd")
    assert "leads outside the workspace" in words(outcome)


class _EditorFiles(DiskFiles):
    """A disk with one file open in an editor."""

    @override
    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        return FileText(
            path=path, text="unsaved\n", source="buffer", sha256="0" * 64, version=7, dirty=True
        )


async def test_unsaved_text_is_read_and_only_the_details_say_so(bench: Bench) -> None:
    bench.put("a.txt", "saved\n")
    files = _EditorFiles((bench.root,), bench.root)
    bench.workspace = replace(bench.workspace, files=files)
    outcome = await bench.run("read", path="a.txt")
    assert words(outcome) == "unsaved\n"
    assert {name: details(outcome)[name] for name in ("source", "version", "dirty")} == {
        "source": "buffer",
        "version": 7,
        "dirty": True,
    }


async def test_a_large_file_is_paged_to_its_end(bench: Bench) -> None:
    bench.put("a.txt", _numbered(200_000))
    outcome = await bench.run("read", path="a.txt", offset=199_999)
    assert words(outcome) == "line 199999\nline 200000\n"
