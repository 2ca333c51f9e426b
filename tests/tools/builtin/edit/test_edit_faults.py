"""The tool edit when the file changes under its hands or the system fails: one clear result, nothing half done."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread
from typing_extensions import override

from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.tools.conftest import Bench, makes_a_file, words

OLD = "one\ntwo\n"


class _Meddled(DiskFiles):
    """A disk on which something happens once, between the tool's reading and its writing."""

    def __init__(self, root: Path, meddle: Callable[[Path], object]) -> None:
        super().__init__((root,), root)
        self._meddle: Callable[[Path], object] | None = meddle

    @override
    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        if (meddle := self._meddle) is not None:
            self._meddle = None
            await to_thread.run_sync(meddle, path)
        return await super().write(path, text, base=base)


def _edit(bench: Bench):
    return bench.run("edit", path="a.txt", edits=[{"oldText": "one", "newText": "1"}])


def _beside(bench: Bench) -> list[str]:
    return sorted(file.name for file in bench.root.iterdir())


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("zero\none\n")
    other.replace(path)


def _made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _made_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "outside.txt")


def _made_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _same_length(path: Path) -> None:
    """Change it so that neither its size nor its times tell."""
    found = path.stat()
    path.write_bytes(b"one\nTWO\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.mark.parametrize(
    ("meddle", "said"),
    [
        pytest.param(lambda path: path.unlink(), "File not found: ", id="deleted"),
        pytest.param(_made_folder, "Is a directory: ", id="folder"),
        pytest.param(_made_link, "was refused: a symbolic link", id="link that leads out"),
        pytest.param(_made_pipe, "Not a regular file: ", id="pipe"),
        pytest.param(lambda path: path.write_bytes(b"\0\1"), "Cannot edit a.txt: ", id="binary"),
        pytest.param(
            lambda path: path.write_text("two\n"), "Could not find the exact text", id="gone"
        ),
    ],
)
async def test_what_became_of_the_file_is_said(bench: Bench, meddle, said: str) -> None:
    outside = bench.root.parent / "outside.txt"
    outside.write_text("one\n")
    bench.put("a.txt", OLD)
    bench.workspace = replace(bench.workspace, files=_Meddled(bench.root, meddle))
    outcome = await _edit(bench)
    assert outcome.status == "error"
    assert said in words(outcome)
    assert "a.txt" in words(outcome)
    assert outside.read_text() == "one\n"
    assert set(_beside(bench)) <= {"a.txt"}


@pytest.mark.parametrize(
    ("meddle", "after"),
    [
        pytest.param(_replaced, "zero\n1\n", id="another file"),
        pytest.param(_same_length, "1\nTWO\n", id="same size and time"),
        pytest.param(lambda path: path.write_text("one\ntw"), "1\ntw", id="shorter"),
        pytest.param(lambda path: path.write_text(f"{OLD}3\n"), "1\ntwo\n3\n", id="longer"),
        pytest.param(
            lambda path: path.write_bytes(f"\ufeff{OLD}".encode()), "\ufeff1\ntwo\n", id="marked"
        ),
    ],
)
async def test_what_somebody_else_wrote_meanwhile_is_kept(bench: Bench, meddle, after: str) -> None:
    path = bench.put("a.txt", OLD)
    bench.workspace = replace(bench.workspace, files=_Meddled(bench.root, meddle))
    assert (await _edit(bench)).status == "ok"
    assert path.read_text(encoding="utf-8") == after
    assert _beside(bench) == ["a.txt"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod", "open"])
async def test_when_the_system_fails_the_old_file_is_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path = bench.put("a.txt", OLD)
    real = getattr(os, call)

    def failing(*given, **more):
        if call == "open" and not makes_a_file(given[1]):
            return real(*given, **more)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        outcome = await _edit(bench)
    assert outcome.status == "error"
    assert f"({errno.errorcode[code]})" in words(outcome)
    assert path.read_text() == OLD
    assert _beside(bench) == ["a.txt"]


async def test_large_files_are_compared_to_the_last_byte(bench: Bench) -> None:
    """Longer than the pieces in which they are compared."""
    text = "ä line\n" * 400_000
    path = bench.put("a.txt", f"{text}one\n{text}x")
    end = path.stat().st_size - 1

    def change_the_end(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(end)
            file.write(b"y")

    bench.workspace = replace(bench.workspace, files=_Meddled(bench.root, change_the_end))
    assert (await _edit(bench)).status == "ok"
    assert path.read_text(encoding="utf-8") == f"{text}1\n{text}y"


async def test_a_common_line_is_still_counted_as_it_is_remembered(bench: Bench) -> None:
    """More places than are looked at one by one."""
    path = bench.put("a.txt", "}  \n" * 5_000 + "{  \n}\n")
    outcome = await bench.run("edit", path="a.txt", edits=[{"oldText": "}\n}", "newText": "x"}])
    assert words(outcome).startswith("Found 4999 occurrences")
    outcome = await bench.run("edit", path="a.txt", edits=[{"oldText": "{\n}", "newText": "x"}])
    assert outcome.status == "ok"
    assert path.read_text().endswith("}  \nx\n")


@pytest.mark.parametrize(
    "edits",
    [
        None,
        "not json",
        7,
        [None],
        ["x"],
        [[]],
        [{}],
        [{"oldText": "one"}],
        [{"oldText": 1, "newText": "1"}],
        [{"oldText": ["one"], "newText": "1"}],
        {"oldText": "one"},
    ],
    ids=repr,
)
async def test_ill_typed_edits_are_told_and_change_nothing(bench: Bench, edits) -> None:
    path = bench.put("a.txt", OLD)
    outcome = await bench.run("edit", path="a.txt", edits=edits)
    assert outcome.status == "error"
    assert words(outcome).startswith('Validation failed for tool "edit":\n  - edits')
    assert path.read_text() == OLD
    assert bench.begun == []
