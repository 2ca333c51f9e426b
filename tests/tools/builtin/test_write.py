"""The tool write: whole files, with their folders."""

import errno
import os
from collections.abc import Callable

import pytest

from tests.tools.conftest import Bench, details, makes_a_file, words


async def test_a_file_is_made(bench: Bench) -> None:
    outcome = await bench.run("write", path="a.txt", content="hello world")
    assert (outcome.status, words(outcome)) == ("ok", "Successfully wrote 11 bytes to a.txt")
    assert (bench.root / "a.txt").read_text() == "hello world"
    shown = {name: details(outcome)[name] for name in ("path", "byte_size", "created", "saved")}
    assert shown == {
        "path": str(bench.root / "a.txt"),
        "byte_size": 11,
        "created": True,
        "saved": True,
    }


async def test_a_file_is_overwritten(bench: Bench) -> None:
    path = bench.put("a.txt", "old")
    outcome = await bench.run("write", path="a.txt", content="new")
    assert path.read_text() == "new"
    assert details(outcome)["created"] is False


@pytest.mark.parametrize(
    ("before", "content", "rows"),
    [
        ("", "a\n", ["@@ -0,0 +1,1 @@", "+a"]),
        ("a\n", "", ["@@ -1,1 +0,0 @@", "-a"]),
        ("a", "b\na", ["@@ -1,1 +1,2 @@", "+b", " a", "\\ No newline at end of file"]),
        ("a\nb\n", "x\na\nb\n", ["@@ -1,2 +1,3 @@", "+x", " a", " b"]),
        ("a\n", "a\n", []),
    ],
)
async def test_what_a_write_changes_is_a_patch(
    bench: Bench, before: str, content: str, rows: list[str]
) -> None:
    _ = bench.put("a.txt", before)
    outcome = await bench.run("write", path="a.txt", content=content)
    assert details(outcome)["patch"].splitlines()[2:] == rows


async def test_missing_folders_are_made(bench: Bench) -> None:
    await bench.run("write", path="nested/deep/dir/test.txt", content="hello")
    assert (bench.root / "nested/deep/dir/test.txt").read_text() == "hello"


async def test_nothing_makes_an_empty_file(bench: Bench) -> None:
    outcome = await bench.run("write", path="a.txt", content="")
    assert words(outcome) == "Successfully wrote 0 bytes to a.txt"
    assert (bench.root / "a.txt").read_bytes() == b""


async def test_all_characters_survive(bench: Bench) -> None:
    outcome = await bench.run("write", path="a.txt", content="你好 🌍")
    assert words(outcome) == "Successfully wrote 11 bytes to a.txt"
    assert (bench.root / "a.txt").read_text(encoding="utf-8") == "你好 🌍"
    assert words(await bench.run("read", path="a.txt")) == "你好 🌍"


@pytest.mark.parametrize(
    "arguments",
    [{"path": "\ud800/x", "content": "x"}, {"path": "a.txt", "content": "a\ud83db"}],
    ids=["name", "content"],
)
async def test_half_a_character_is_refused_and_nothing_is_made(
    bench: Bench, arguments: dict[str, str]
) -> None:
    """Replaced by U+FFFD it would be another name, or another content, than the model wrote."""
    outcome = await bench.call("write", arguments)
    assert outcome.status == "error"
    assert words(outcome).startswith("Invalid arguments for tool write: ")
    assert "write the whole character or leave it out" in words(outcome)
    assert list(bench.root.iterdir()) == []


async def test_what_the_system_refuses_is_said(plain_bench: Bench) -> None:
    folder = plain_bench.root / "closed"
    folder.mkdir(mode=0o500)
    outcome = await plain_bench.run("write", path="closed/a.txt", content="test")
    assert outcome.status == "error"
    assert words(outcome).startswith(f"Permission denied: {folder / 'a.txt'} (EACCES).")


async def test_a_write_protected_file_is_kept(plain_bench: Bench) -> None:
    path = plain_bench.put("a.txt", "old")
    path.chmod(0o444)
    outcome = await plain_bench.run("write", path="a.txt", content="new")
    assert "is write-protected (EACCES)" in words(outcome)
    assert path.read_text() == "old"


async def test_a_path_that_leads_out_is_refused(bench: Bench) -> None:
    outcome = await bench.run("write", path="../../etc/crontab", content="malicious")
    assert outcome.status == "error"
    assert "leads outside the workspace" in words(outcome)


async def test_tilde_is_the_home_folder(home_bench: Bench) -> None:
    await home_bench.run("write", path="~/output/result.txt", content="data")
    assert (home_bench.root / "output/result.txt").read_text() == "data"


@pytest.mark.parametrize(
    "arguments", [{"path": 123, "content": None}, {"path": "a.txt"}, {"content": "x"}, {}]
)
async def test_ill_typed_arguments_are_told(bench: Bench, arguments) -> None:
    outcome = await bench.call("write", arguments)
    assert outcome.status == "error"
    assert words(outcome).startswith('Validation failed for tool "write":\n  - ')
    assert list(bench.root.iterdir()) == []


async def test_a_binary_file_is_kept(bench: Bench) -> None:
    path = bench.put("a.bin", b"\0\1\2")
    outcome = await bench.run("write", path="a.bin", content="x")
    assert words(outcome).startswith("Cannot overwrite a.bin: it is a binary file (3B).")
    assert path.read_bytes() == b"\0\1\2"


async def test_mark_and_encoding_stay(bench: Bench) -> None:
    path = bench.put("a.txt", "\ufeffalt\r\n".encode("utf-16-le"))
    await bench.run("write", path="a.txt", content="neu\n")
    assert path.read_bytes() == "\ufeffneu\n".encode("utf-16-le")


async def test_an_encoding_that_cannot_hold_the_text_gives_way_to_utf_8(bench: Bench) -> None:
    path = bench.put("a.txt", ("Größe: fünf süße Äpfel und Öl.\n" * 20).encode("cp1252"))
    outcome = await bench.run("write", path="a.txt", content="你好")
    assert outcome.status == "ok"
    assert "; it is UTF-8 now." in words(outcome)
    assert path.read_text(encoding="utf-8") == "你好"


async def test_a_folder_is_refused(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    assert "Is a directory" in words(await bench.run("write", path="sub", content="x"))


async def test_nothing_lies_beside_the_file(bench: Bench) -> None:
    await bench.run("write", path="a.txt", content="x")
    await bench.run("write", path="a.txt", content="y")
    assert _names(bench) == ["a.txt"]


async def test_the_title_names_the_file(bench: Bench) -> None:
    tool = bench.tools["write"]
    assert tool.title({"file_path": "a.txt"}) == "write a.txt"
    assert tool.title({"path": 1}) == "write ?"


def _names(bench: Bench) -> list[str]:
    return [file.name for file in bench.root.iterdir()]


def _failing(call: str, code: int) -> Callable[..., object]:
    """Make a call of the system fail, but for what is opened to be read."""
    real = getattr(os, call)

    def fail(*given, **more):
        if call == "open" and not makes_a_file(given[1]):
            return real(*given, **more)
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("calls", [("fsync",), ("open",), ("link", "replace")], ids=repr)
async def test_when_the_system_fails_there_is_no_half_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, calls, code: int
) -> None:
    with monkeypatch.context() as patch:
        for call in calls:
            patch.setattr(os, call, _failing(call, code))
        outcome = await bench.run("write", path="a.txt", content="new")
    assert outcome.status == "error"
    assert f"({errno.errorcode[code]})" in words(outcome)
    assert _names(bench) == []


async def test_without_hard_links_a_file_is_made_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _failing("link", errno.EPERM))
    assert (await bench.run("write", path="a.txt", content="new")).status == "ok"
    assert (bench.root / "a.txt").read_text() == "new"
    assert _names(bench) == ["a.txt"]
