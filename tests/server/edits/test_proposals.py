"""Edits that wait for their user: kept with their texts, found again by the next process, forgotten when they are done."""

import json
from pathlib import Path

import pytest

from tiller_server.lsp.edits.proposals import MOST, Proposals

ROOT = Path("/ws")
A = ROOT / "sub/a.py"
ODD = "one\u2028\x85two\r\n\udc80\n"


def kept_in(folder: Path) -> Proposals:
    proposals = Proposals()
    proposals.keep_in(folder, root=ROOT)
    return proposals


async def test_what_waits_is_found_by_the_next_process(tmp_path: Path) -> None:
    first = kept_in(tmp_path / "p")
    assert list(await first.all()) == []
    patch = await first.keep(A, ODD, f"{ODD}end\n")
    (waiting,) = await first.all()
    assert (waiting.id, waiting.path, waiting.patch) == ("000001", A, patch)
    second = kept_in(tmp_path / "p")
    assert list(await second.all()) == [waiting]
    assert await second.texts(waiting) == (ODD, f"{ODD}end\n")
    modes = {one.stat().st_mode & 0o077 for one in (tmp_path / "p").iterdir()}
    assert modes == {0}


async def test_what_is_done_is_forgotten_and_its_number_may_be_used_again(tmp_path: Path) -> None:
    proposals = kept_in(tmp_path / "p")
    for _ in range(2):
        _ = await proposals.keep(A, "a\n", "b\n")
        (waiting,) = await proposals.all()
        await proposals.forget(waiting)
        await proposals.forget(waiting)
        assert [*await proposals.all(), *(tmp_path / "p").iterdir()] == []
        assert await proposals.texts(waiting) is None


async def test_the_oldest_go_with_their_texts(tmp_path: Path) -> None:
    proposals = kept_in(tmp_path / "p")
    for number in range(MOST + 3):
        _ = await proposals.keep(A, "a\n", f"{number}\n")
    waiting = await proposals.all()
    assert (len(waiting), waiting[0].id) == (MOST, "000004")
    assert len(list((tmp_path / "p").iterdir())) == 2 * MOST


@pytest.mark.parametrize(
    "texts",
    [
        None,
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"v": 2, "path": "/ws/sub/a.py"}\n"a"\n"b"',
        b'{"v": 1, "path": "sub/a.py"}\n"a"\n"b"',
        b'{"v": 1, "path": 5}\n"a"\n"b"',
    ],
    ids=["none", "empty", "bytes", "nested", "newer", "relative", "number"],
)
async def test_what_cannot_be_read_does_not_wait(tmp_path: Path, texts: bytes | None) -> None:
    proposals = kept_in(tmp_path)
    patch = await proposals.keep(A, "a\n", "b\n")
    assert patch is not None
    beside = patch.with_suffix(".json")
    beside.unlink()
    if texts is not None:
        beside.write_bytes(texts)
    (tmp_path / "mine.diff").write_text("of the user's own")
    assert list(await kept_in(tmp_path).all()) == []
    assert (await proposals.keep(A, "a\n", "c\n")) == tmp_path / "000002-a.py.diff"


@pytest.mark.parametrize("rows", [[], ["a"], ["a", "b", "c"], ["a", 5]])
async def test_damaged_texts_are_told_apart(tmp_path: Path, rows: list[object]) -> None:
    proposals = kept_in(tmp_path)
    patch = await proposals.keep(A, "a\n", "b\n")
    assert patch is not None
    (waiting,) = await proposals.all()
    told = [{"v": 1, "path": str(A)}, *rows]
    patch.with_suffix(".json").write_text("\n".join(json.dumps(one) for one in told))
    assert await proposals.texts(waiting) is None


async def test_without_a_folder_nothing_waits(tmp_path: Path) -> None:
    proposals = Proposals()
    assert await proposals.keep(A, "a", "b") is None
    (tmp_path / "file").write_text("in the way")
    blocked = kept_in(tmp_path / "file")
    assert await blocked.keep(A, "a", "b") is None
    assert list(await proposals.all()) == []
