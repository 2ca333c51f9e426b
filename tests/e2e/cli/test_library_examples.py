"""The programs of `examples/library`, each run as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says, tool_texts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LIBRARY = Path(__file__).parents[3] / "examples" / "library"


def finished(ground: Ground, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in the workspace to its end."""
    return subprocess.run(
        [sys.executable, "-P", str(LIBRARY / f"{name}.py"), *words],
        env=dict(ground.env),
        cwd=ground.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run(ground: Ground, name: str, *words: str) -> str:
    """Run a program in the workspace; gives what it printed."""
    done = finished(ground, name, *words)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_every_program_is_run_here() -> None:
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    programs = {path.stem for path in LIBRARY.glob("*.py")}
    assert programs - tests == set()


def test_minimal(ground: Ground) -> None:
    ground.provider.script([says("Nothing at all.")])
    assert run(ground, "minimal", "What is here?") == "Nothing at all.\n"
    assert len(ground.sessions()) == 1


@pytest.mark.parametrize("name", ["minimal", "in_memory", "custom_tool", "events_to_a_queue"])
def test_a_program_that_gets_no_answer_says_why_and_fails(ground: Ground, name: str) -> None:
    ground.provider.script([{"status": 401, "body": {"error": {"message": "the key is wrong"}}}])
    done = finished(ground, name)
    assert done.returncode == 1
    assert "the key is wrong" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_in_memory(ground: Ground) -> None:
    ground.provider.script([says("Nothing.")])
    assert run(ground, "in_memory") == "Nothing.\n"
    assert ground.sessions() == []
    tools = {one["function"]["name"] for one in ground.provider.requests[0]["body"]["tools"]}
    assert tools == {"read", "grep", "find", "ls"}


def test_custom_tool(ground: Ground) -> None:
    ground.provider.script([calls(("stock", {"part": "bolts"})), says("Seven.")])
    assert run(ground, "custom_tool") == "Seven.\n"
    assert tool_texts(ground.provider.requests[-1]) == ["7 bolts"]


def test_own_provider(ground: Ground) -> None:
    assert run(ground, "own_provider") == "I was sent 1 message.\n"
    assert ground.provider.requests == []


def test_events_to_a_queue(ground: Ground) -> None:
    ground.file("a.txt", "x")
    ground.provider.script([calls(("read", {"path": "a.txt"})), says("An x.")])
    printed = run(ground, "events_to_a_queue")
    assert printed.split("\n")[-2:] == ["completed", ""]
    assert "a.txt]" in printed
    assert "An x.\n" in printed


def test_several_sessions(ground: Ground) -> None:
    ground.provider.script([{**says("One."), "when": "first"}, {**says("Two."), "when": "second"}])
    assert run(ground, "several_sessions", "first", "second") == "One.\nTwo.\n"
