"""`tiller review` that is stopped, killed, or read by somebody who has seen enough; and in windows of any width."""

import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.clients.server import TILLER, Ground, says
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import running, shell
from tests.support.review.reviewing import a_report, reports
from tests.support.workspace.processes import processes_with, wait_gone
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SUMS = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
FOUND = a_report(
    "sums.py",
    6,
    "return b - a",
    title="Turned round",
    message="`sub(3, 1)` gives -2, and whoever subtracts gets the negative of what was meant.",
    suggestion="    return a - b",
)
STUCK = {"text": "a b c", "deltas": 3, "stall_forever_after_deltas": 1}
CTRL_C = "\x03"
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
BY_SIGNAL = (130, -signal.SIGINT)


@pytest.fixture
def branch(ground: Ground) -> Repository:
    repository = Repository(ground.root)
    repository.commit("Begin", {"sums.py": SUMS})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.replace("sums.py", "return a - b", "return b - a")
    repository.commit("Subtract")
    return repository


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_first_signal_ends_it_with_what_there_is(
    ground: Ground, branch: Repository, scratch: Path, number: signal.Signals, code: int
) -> None:
    ground.provider.script([reports(FOUND), STUCK])
    arguments = ["review", "--format", "json", "--output", "r.md", "--fix", "patch"]
    with running(in_folder(ground, scratch), arguments) as command:
        ground.provider.wait_requests(2, timeout_s=30)
        command.send(number)
        ran = command.end()
    assert ran.code == code
    assert ran.err == "stopping; once more leaves at once\n"
    report = json.loads(ran.out)
    assert report["stopped"] == "cancelled"
    assert report["partial"].startswith("0 of 1 files were looked at: ")
    assert [one["title"] for one in report["findings"]] == ["Turned round"]
    assert "Turned round" in (ground.root / "r.md").read_text("utf-8")
    assert not (ground.root / "tiller-fix.patch").exists()
    assert list(scratch.iterdir()) == []


def test_the_second_signal_leaves_at_once(ground: Ground, branch: Repository) -> None:
    ground.provider.script([reports(FOUND), STUCK])
    with running(ground, ["review"]) as command:
        ground.provider.wait_requests(2, timeout_s=30)
        command.send(signal.SIGINT)
        command.send(signal.SIGINT)
        begun = time.monotonic()
        ran = command.end()
    print(f"left after {time.monotonic() - begun:.2f} s")
    assert ran.code in BY_SIGNAL
    assert "Traceback" not in ran.err


def test_a_signal_between_two_parts_begins_no_other(ground: Ground, branch: Repository) -> None:
    for name in ("one", "two", "three"):
        branch.write(f"{name}.py", "".join(f"{name}_{n} = {n}\n" for n in range(2_000)))
    branch.commit("Much")
    ground.provider.script([{"text": "Seen.", "repeat": -1}])
    with running(ground, ["review", "--format", "json"]) as command:
        ground.provider.wait_requests(1, timeout_s=30)
        command.send(signal.SIGTERM)
        ran = command.end()
    assert ran.code == 143
    assert json.loads(ran.out)["stopped"] == "cancelled"
    assert len(ground.provider.requests) <= 2


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_before_the_model_is_asked_leaves_nothing_behind(
    ground: Ground, branch: Repository, scratch: Path, number: signal.Signals, code: int
) -> None:
    slow = in_folder(ground, scratch)
    git = slow_git(ground)
    env = {**slow.env, "PATH": f"{git.parent}:{slow.env['PATH']}"}
    with running(with_env(slow, env), ["review", "--format", "json"]) as command:
        sleepers = processes_with("sleep", "601", below=command.pid, at_least=1)
        command.send(number)
        ran = command.end()
    assert ran.code == code
    assert json.loads(ran.out)["error"]["message"] == (
        "it was stopped before there was anything to show"
    )
    assert "Traceback" not in ran.err
    assert wait_gone(sleepers, timeout_s=5) == set()
    assert list(scratch.iterdir()) == []
    assert ground.provider.requests == []


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_it_repairs_ends_the_tests_and_keeps_nothing(
    ground: Ground, branch: Repository, scratch: Path, number: signal.Signals, code: int
) -> None:
    ground.provider.script([reports(FOUND), says("One thing.")])
    arguments = ["review", "--fix", "patch", "--test", "sleep 602"]
    with running(in_folder(ground, scratch), arguments) as command:
        sleepers = processes_with("sleep", "602", below=command.pid, at_least=1)
        command.send(number)
        ran = command.end()
    assert ran.code == code
    assert "Review: 1 error" in ran.out
    assert ran.err.splitlines() == [
        "stopping; once more leaves at once",
        "tiller review: the repair was stopped, and nothing of it was kept",
    ]
    assert wait_gone(sleepers, timeout_s=5) == set()
    assert not (ground.root / "tiller-fix.patch").exists()
    assert list(scratch.iterdir()) == []


def test_a_reader_who_has_seen_enough_does_not_keep_it_from_its_work(
    ground: Ground, branch: Repository
) -> None:
    # More than a pipe holds, so that the rest of it has nowhere to go.
    long = FOUND | {"message": "It is wrong. " * 300}
    lines = "".join(f"value_{n} = {n}\n" for n in range(60))
    branch.commit("Many", {"many.py": lines})
    many = [
        long
        | {"path": "many.py", "line": n + 1, "evidence": f"value_{n} = {n}", "suggestion": None}
        for n in range(60)
    ]
    ground.provider.script([reports(FOUND, *many), {"text": "Much is wrong.", "repeat": -1}])
    ended = shell(
        ground,
        "$TILLER review --max-findings 100 --fix patch --output r.json | head -1; echo ${PIPESTATUS[0]}",
    )
    assert ended.out == "Review: 61 errors\n3\n"
    assert ended.err.splitlines() == [
        line
        for line in ended.err.splitlines()
        if "1 of 61 repaired" in line or "not repaired" in line
    ]
    assert (ground.root / "tiller-fix.patch").exists()
    assert len(json.loads((ground.root / "r.json").read_text("utf-8"))["findings"]) == 61


def test_an_output_that_cannot_be_written_fails_it(ground: Ground, branch: Repository) -> None:
    if not (Path("/dev/full").exists() and stat.S_ISCHR(os.stat("/dev/full").st_mode)):  # noqa: PTH116 - one look
        pytest.skip("there is no /dev/full here")
    ground.provider.script([reports(FOUND), says("One thing.")])
    ended = shell(ground, "$TILLER review > /dev/full")
    assert ended.code == 1
    assert "standard output cannot be written to (No space left on device)" in ended.complaint


@pytest.mark.parametrize("columns", [1, 20, 200])
def test_in_a_window_of_any_width_it_can_be_read(
    ground: Ground, branch: Repository, columns: int
) -> None:
    ground.provider.script([reports(FOUND), says("One thing is turned round. " * 3)])
    with terminal(ground, ["review"], columns=columns, lines=50) as window:
        assert window.end() == 3
    shown = re.sub(r"\s", "", window.whole)
    for words in (
        "Turned round",
        "sums.py:6",
        "return b - a",
        "turned round",
        "gives -2",
        "cost unknown",
    ):
        assert words.replace(" ", "") in shown, window.whole
    assert "Traceback" not in window.whole


def test_ctrl_c_in_a_terminal_shows_what_there_is(ground: Ground, branch: Repository) -> None:
    ground.provider.script([reports(FOUND), STUCK])
    with terminal(ground, ["review"], columns=80, lines=50) as window:
        ground.provider.wait_requests(2, timeout_s=30)
        window.type(CTRL_C)
        assert window.end() == 130
    assert "stopping; once more leaves at once" in window.whole
    assert "PARTIAL: 0 of 1 files were looked at" in window.whole
    assert "error Turned round" in window.whole


def test_nobody_who_watches_is_no_reason_to_end(ground: Ground, branch: Repository) -> None:
    down = {"status": 503, "headers": {"retry-after": "0"}, "body": {"error": {"message": "busy"}}}
    ground.provider.script([down, reports(FOUND), says("One thing.")])
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as nobody:  # noqa: PTH123 - not a Path
        ran = subprocess.run(
            [*TILLER, "review"],
            cwd=ground.root,
            env=dict(ground.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=nobody,
            timeout=60,
            check=False,
        )
    assert ran.returncode == 3
    assert b"error Turned round" in ran.stdout
    assert len(ground.provider.requests) == 3


def in_folder(ground: Ground, folder: Path) -> Ground:
    return with_env(ground, {**ground.env, "TMPDIR": str(folder)})


def with_env(ground: Ground, env: dict[str, str]) -> Ground:
    return Ground(dirs=ground.dirs, env=env, provider=ground.provider, root=ground.root)


def slow_git(ground: Ground) -> Path:
    """Make a Git that takes its time over the difference."""
    path = ground.dirs.data.parent / "slow" / "git"
    path.parent.mkdir()
    path.write_text(
        '#!/bin/sh\ncase "$*" in *" diff "*) exec sleep 601;; esac\nexec /usr/bin/git "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path
