"""What is remembered of the texts that a model was shown: the latest of each file, and not without end."""

from pathlib import Path

from agent_core.tools.port import MOST_CHARS, MOST_TEXTS, ReadCache
from tests.tools.conftest import Bench, words

A, B = Path("/ws/a"), Path("/ws/b")


def test_the_latest_text_of_a_file_counts_until_it_is_forgotten() -> None:
    seen = ReadCache()
    assert seen.get(A) is None
    seen.put(A, "one")
    seen.put(A, "two")
    seen.put(B, "b")
    assert (seen.get(A), seen.get(B)) == ("two", "b")
    seen.forget(A)
    seen.forget(A)
    assert (seen.get(A), seen.get(B)) == (None, "b")
    seen.clear()
    assert seen.get(B) is None


def test_what_was_looked_at_longest_ago_is_forgotten_first() -> None:
    seen = ReadCache()
    for number in range(MOST_TEXTS):
        seen.put(Path(f"/ws/{number}"), "text")
    seen.put(Path("/ws/0"), "again")
    seen.put(A, "a")
    assert (seen.get(Path("/ws/0")), seen.get(Path("/ws/1")), seen.get(A)) == ("again", None, "a")
    seen.put(B, "x" * MOST_CHARS)
    assert (seen.get(A), seen.get(B)) == (None, "x" * MOST_CHARS)


async def test_a_file_that_somebody_else_changed_on_the_disk_keeps_that(bench: Bench) -> None:
    path = bench.put("a.txt", "one\ntwo\nthree\n")
    _ = await bench.run("read", path="a.txt")
    path.write_text("one\ntwo\nthree\nfour\n")
    outcome = await bench.run("write", path="a.txt", content="1\ntwo\nthree\n")
    assert outcome.status == "ok"
    assert path.read_text() == "1\ntwo\nthree\nfour\n"
    assert words(outcome).endswith("These lines are now:\n4: four")


async def test_what_the_models_own_command_changed_is_written_over(bench: Bench) -> None:
    path = bench.put("a.txt", "one\ntwo\n")
    _ = await bench.run("read", path="a.txt")
    bench.seen.forget(path)  # as the tool bash does for what it saw a command change
    path.write_text("ONE\nTWO\n")
    outcome = await bench.run("write", path="a.txt", content="one\ntwo\n")
    assert (outcome.status, path.read_text()) == ("ok", "one\ntwo\n")
