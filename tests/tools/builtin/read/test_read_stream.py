"""The tool read on large files: what is read in pieces comes out as what is read whole."""

import hashlib
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given, strategies as st
from typing_extensions import override

from agent_core.kernel.errors import ToolError
from agent_core.tools.builtin.read.page import PageScan, ReadPage, RequestedLines, page_of
from agent_core.workspace import FileBytes, FileReader, FileText
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.port import READ_LIMIT_BYTES
from tests.support.harness.sizes import at_size
from tests.tools.conftest import Bench, details, words

MARK = b"\xef\xbb\xbf"
LONG = "x" * 60_000
OVER = b"0123456789abcde\n" * (9 * 65_536)
"""Nine million bytes: too large to be read whole."""


@dataclass(slots=True)
class _Pieces:
    """A reader that gives as little at a time as it likes."""

    inner: FileReader
    piece_bytes: int

    @property
    def size(self) -> int:
        return self.inner.size

    async def read(self, limit: int) -> bytes:
        return await self.inner.read(min(limit, self.piece_bytes))


class _NothingWhole(DiskFiles):
    """A disk on which every file is too large, and comes in small pieces."""

    @override
    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        return await super().read(path, limit_bytes=0)

    @override
    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        async with super().open(path) as reader:
            yield _Pieces(reader, 7 if reader.size < 1_000 else 5_003)


def in_pieces(bench: Bench) -> Bench:
    files = _NothingWhole((bench.root,), bench.root)
    return replace(bench, workspace=replace(bench.workspace, files=files))


def _numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(1, count + 1))


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"], ids=["open", "closed", "empty line"])
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"offset": 3},
        {"limit": 2},
        {"offset": 2, "limit": 1},
        {"offset": 2, "limit": 1000},
        {"offset": 1999, "limit": 2},
        {"offset": 99_999},
    ],
    ids=lambda wanted: ",".join(f"{name}={value}" for name, value in wanted.items()) or "all",
)
@pytest.mark.parametrize(
    "data",
    [
        b"one",
        b"one\ntwo\n\nfour",
        b"one\r\ntwo\r\nthree",
        b"\n\n\nx",
        "grüße\n漢字\n🙂🙂\nö".encode(),
        MARK + "grüße\n漢字\n🙂".encode(),
        "\ufeffgrüße\n漢字\n🙂".encode("utf-16-le"),
        "\ufeffgrüße\n漢字\n🙂".encode("utf-16-be"),
        _numbered(2500).rstrip(b"\n"),
        b"\n".join(b"x" * 200 for _ in range(500)),
        f"short\n{LONG}\nshort".encode(),
        f"{LONG}\nshort".encode(),
        ("ä" * 25_600).encode() + b"\nmore",
        b"a\0b",
        b"\xff\xfea",
        "\ufeffa\0b".encode("utf-16-le"),
    ],
    ids=[
        "one line",
        "four lines",
        "crlf",
        "empty lines",
        "utf-8",
        "mark",
        "utf-16-le",
        "utf-16-be",
        "many lines",
        "many bytes",
        "long second line",
        "long first line",
        "just fits",
        "nul",
        "half a character",
        "nul in utf-16",
    ],
)
async def test_in_pieces_a_file_reads_as_it_does_whole(bench: Bench, data, wanted, end) -> None:
    if data.startswith(b"\xff\xfe") and len(data) > 3:
        end = end.decode().encode("utf-16-le")
    elif data.startswith(b"\xfe\xff"):
        end = end.decode().encode("utf-16-be")
    bench.put("a.txt", data + end)
    whole = await bench.run("read", path="a.txt", **wanted)
    streamed = await in_pieces(bench).run("read", path="a.txt", **wanted)
    assert (streamed.status, streamed.result) == (whole.status, whole.result)


@given(
    text=st.text(st.sampled_from("ab\n\rä漢🙂"), max_size=60),
    first=st.integers(1, 12),
    count=st.none() | st.integers(1, 6),
    piece_bytes=st.integers(1, 70),
    stretch=st.sampled_from([1, 1, 1, 4_000]),
)
def test_a_page_does_not_depend_on_where_pieces_end(text, first, count, piece_bytes, stretch):
    text *= stretch
    data = text.encode()
    piece_bytes *= stretch
    wanted = RequestedLines(first=first, count=count)
    scan = PageScan(wanted)
    for at in range(0, len(data), piece_bytes):
        scan.add(data[at : at + piece_bytes])

    def outcome(page) -> ReadPage | str:
        try:
            return page()
        except ToolError as error:
            return str(error)

    assert outcome(scan.page) == outcome(lambda: page_of(text, wanted))


async def test_a_large_file_is_read_exactly(bench: Bench) -> None:
    path = bench.put("a.log", OVER + b"the end\n")
    outcome = await bench.run("read", path="a.log", offset=589_825)
    assert words(outcome) == "the end\n"
    assert details(outcome) == {
        "path": str(path),
        "source": "disk",
        "sha256": hashlib.sha256(OVER + b"the end\n").hexdigest(),
        "version": None,
        "dirty": False,
        "encoding": "utf-8",
        "bom": False,
        "line_count": 589_825,
        "first_line": 589_825,
        "last_line": 589_825,
        "truncated": False,
    }


async def test_a_large_file_says_how_to_go_on(bench: Bench) -> None:
    bench.put("a.log", OVER)
    outcome = await bench.run("read", path="a.log")
    assert words(outcome).endswith(
        "\n\n[Showing lines 1-2000 of 589824. Use offset=2001 to continue.]"
    )


async def test_a_large_binary_file_is_left_after_its_first_bytes(bench: Bench) -> None:
    bench.put("a.bin", b"\x7fELF\0\0" + OVER)
    outcome = await bench.run("read", path="a.bin")
    assert words(outcome) == (
        "a.bin is a binary file (9.0MB), not text. Use bash: `file a.bin` tells what it is, "
        "`xxd a.bin | head` shows bytes, `strings a.bin` its words."
    )


async def test_a_large_file_in_another_encoding_is_left_to_bash(bench: Bench) -> None:
    bench.put("a.txt", OVER + "grüße\n".encode("latin-1"))
    outcome = await bench.run("read", path="a.txt")
    assert outcome.status == "error"
    assert words(outcome).startswith(
        "a.txt is not UTF-8 text (9.0MB). In files over 8.0MB no other encoding is guessed"
    )
    assert "`iconv -f latin1 -t utf-8 a.txt |" in words(outcome)


async def test_half_a_character_is_found_where_pieces_meet(bench: Bench) -> None:
    # One piece ends behind its first byte, and only the piece after the next begins with its second.
    bench.put("a.txt", b"x" * 4_099 + b"\xc3" + b"y" * 5_003 + b"\xa9" + b"z" * 3_997)
    outcome = await in_pieces(bench).run("read", path="a.txt")
    assert words(outcome).startswith("a.txt is not UTF-8 text (12.8KB)")


class _Changing(DiskFiles):
    """A disk on which a file changes once it is open."""

    to_bytes = b""

    @override
    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        async with super().open(path) as reader:
            await anyio.Path(path).write_bytes(self.to_bytes)
            yield reader


async def _read_while(bench: Bench, name: str, *, becomes: bytes):
    files = _Changing((bench.root,), bench.root)
    files.to_bytes = becomes
    changing = replace(bench, workspace=replace(bench.workspace, files=files))
    return await changing.run("read", path=name, offset=589_824)


async def test_a_file_that_grows_is_read_as_far_as_it_went(bench: Bench) -> None:
    bench.put("a.log", OVER)
    outcome = await _read_while(bench, "a.log", becomes=OVER + b"more\n" * 9)
    assert (words(outcome), details(outcome)["line_count"]) == ("0123456789abcde\n", 589_824)
    assert details(outcome)["sha256"] == hashlib.sha256(OVER).hexdigest()


async def test_a_character_that_was_being_written_is_read_to_its_end(bench: Bench) -> None:
    whole = OVER + "漢".encode()
    bench.put("a.log", whole[:-2])
    outcome = await _read_while(bench, "a.log", becomes=whole + b"\nmore\n")
    assert words(outcome) == "0123456789abcde\n漢"


async def test_a_file_that_shrinks_is_told(bench: Bench) -> None:
    bench.put("a.log", OVER + OVER)
    outcome = await _read_while(bench, "a.log", becomes=OVER)
    assert words(outcome) == (
        "0123456789abcde\n\n\n[The file became shorter while it was read; read it again.]"
    )


async def test_a_large_file_is_left_at_once_when_cancelled(bench: Bench) -> None:
    path = bench.root / "a.log"
    with path.open("wb") as file:
        for _ in range(at_size(ci=30, campaign=300)):
            file.write(OVER)
    begun = anyio.current_time()
    with anyio.move_on_after(0.03) as scope:
        await bench.run("read", path="a.log")
    assert scope.cancelled_caught
    assert anyio.current_time() - begun < 0.5


async def test_the_size_of_a_file_costs_no_memory(bench: Bench) -> None:
    count = at_size(ci=12, campaign=114)
    with (bench.root / "a.log").open("wb") as file:
        for _ in range(count):
            file.write(OVER)
    tracemalloc.start()
    try:
        outcome = await bench.run("read", path="a.log", offset=589_824 * count)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words(outcome) == "0123456789abcde\n"
    assert details(outcome)["line_count"] == 589_824 * count
    assert peak_bytes < 8 * 1024 * 1024
