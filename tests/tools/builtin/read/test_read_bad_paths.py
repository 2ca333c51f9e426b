"""The tool read on paths that are odd, wrong or no files."""

import os
import socket

import anyio
import pytest

from tests.tools.conftest import Bench, details, words


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("re\u0301sume\u0301.txt", "résumé.txt", id="decomposed"),
        pytest.param("résumé.txt", "re\u0301sume\u0301.txt", id="composed"),
        pytest.param("L\u2019eau.txt", "L'eau.txt", id="curly quote"),
        pytest.param(
            "Capture d\u2019e\u0301cran.txt", "Capture d'écran.txt", id="decomposed and curly"
        ),
        pytest.param(
            "Screenshot at 3.42.10\u202fPM.txt", "Screenshot at 3.42.10 PM.txt", id="narrow space"
        ),
        pytest.param("it's.txt", "@it's.txt", id="mention"),
    ],
)
async def test_a_name_is_found_as_models_write_it(bench: Bench, name: str, said: str) -> None:
    path = bench.put(name, "found")
    outcome = await bench.run("read", path=said)
    assert (words(outcome), details(outcome)["path"]) == ("found", str(path))


async def test_the_name_that_is_there_wins_over_its_variants(bench: Bench) -> None:
    bench.put("L'eau.txt", "straight")
    bench.put("L\u2019eau.txt", "curly")
    assert words(await bench.run("read", path="L'eau.txt")) == "straight"


@pytest.mark.parametrize(
    "said",
    ["a/" * 2_500 + "a.txt", "x" * 256, "x" * 5_000, "ä" * 200],
    ids=["deep", "name", "long name", "name in bytes"],
)
async def test_a_path_that_is_too_long_is_told(bench: Bench, said: str) -> None:
    outcome = await bench.run("read", path=said)
    assert outcome.status == "error"
    assert "ENAMETOOLONG" in words(outcome)
    assert len(words(outcome)) < 1_000


async def test_a_path_that_is_just_short_enough_is_read(bench: Bench) -> None:
    room = 4_090 - len(os.fsencode(bench.root))
    parts = ["d" * 200] * (room // 201 - 1)
    folder = os.open(bench.root, os.O_RDONLY)
    for part in parts:
        os.mkdir(part, dir_fd=folder)
        inner = os.open(part, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    with os.fdopen(os.open("a.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "w") as file:
        file.write("deep down")
    os.close(folder)
    outcome = await bench.run("read", path="/".join([*parts, "a.txt"]))
    assert words(outcome) == "deep down"


@pytest.mark.parametrize("said", ["a\0b", "\ud800", "", "   "])
async def test_what_is_no_path_is_told(bench: Bench, said: str) -> None:
    outcome = await bench.run("read", path=said)
    assert outcome.status == "error"
    assert "failed: " not in words(outcome)


async def test_a_pipe_is_refused_without_waiting_for_a_writer(bench: Bench) -> None:
    os.mkfifo(bench.root / "pipe")
    with anyio.fail_after(5):
        outcome = await bench.run("read", path="pipe")
    assert outcome.status == "error"
    assert "is a device, a pipe or a socket" in words(outcome)


async def test_a_socket_is_refused(bench: Bench) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(bench.root / "s"))
        outcome = await bench.run("read", path="s")
    assert outcome.status == "error"
    assert "is a device, a pipe or a socket" in words(outcome)


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname", "../outside.txt"])
async def test_a_link_that_leads_out_is_refused(bench: Bench, target: str) -> None:
    (bench.root.parent / "outside.txt").write_text("secret", encoding="utf-8")
    (bench.root / "link").symlink_to(target)
    with anyio.fail_after(5):
        outcome = await bench.run("read", path="link")
    assert outcome.status == "error"
    assert "leads outside the workspace" in words(outcome)


async def test_a_link_to_nothing_is_told(bench: Bench) -> None:
    (bench.root / "link").symlink_to("gone")
    outcome = await bench.run("read", path="link")
    assert outcome.status == "error"
    assert "File not found" in words(outcome)


async def test_a_link_to_itself_is_told(bench: Bench) -> None:
    (bench.root / "link").symlink_to("link")
    outcome = await bench.run("read", path="link")
    assert outcome.status == "error"
    assert "ELOOP" in words(outcome)


async def test_a_file_inside_a_file_is_told(bench: Bench) -> None:
    bench.put("a.txt", "x")
    outcome = await bench.run("read", path="a.txt/b.txt")
    assert outcome.status == "error"
    assert "failed: " not in words(outcome)


async def test_a_file_that_vanishes_is_told(bench: Bench) -> None:
    path = anyio.Path(bench.put("a.txt", "x"))
    assert (await bench.run("read", path="a.txt")).status == "ok"
    await path.unlink()
    assert "File not found" in words(await bench.run("read", path="a.txt"))
