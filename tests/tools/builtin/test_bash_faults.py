"""The tool bash with commands and disks that misbehave: one clear result, in time."""

import errno
import os
import shutil
import signal
from pathlib import Path

import anyio
import pytest

from tests.tools.conftest import WITH_AND_WITHOUT, Bench, details, words

pytestmark = WITH_AND_WITHOUT

CALL_S = 10


async def _bash(bench: Bench, command: str, **more):
    with anyio.fail_after(CALL_S):
        return await bench.run("bash", command=command, **more)


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


async def test_a_command_that_closes_its_output_is_waited_for(bench: Bench) -> None:
    outcome = await _bash(bench, "echo up; exec >&- 2>&-; sleep 0.3; touch late; exit 3")
    assert words(outcome) == "up\n\nCommand exited with code 3"
    assert (bench.root / "late").exists()


async def test_a_command_that_closes_its_output_is_ended_in_time(bench: Bench) -> None:
    outcome = await _bash(bench, "exec >&- 2>&-; sleep 600", timeout=0.3)
    assert words(outcome) == "(no output)\n\nCommand timed out after 0.3 seconds"


async def test_a_command_whose_folder_goes_away_goes_on(bench: Bench) -> None:
    # Contained it cannot be taken away by the command itself.
    outcome = await _bash(bench, 'rmdir "$PWD" 2>/dev/null; echo still; cd /; pwd')
    assert words(outcome) == "still\n/\n"
    shutil.rmtree(bench.root, ignore_errors=True)
    outcome = await _bash(bench, "pwd")
    assert words(outcome) == f"Working directory does not exist: {bench.root}"
    bench.root.mkdir()
    assert words(await _bash(bench, "pwd")) == f"{bench.root}\n"


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGTERM", "SIGKILL", "SIGHUP", "SIGPIPE"])
async def test_every_signal_is_told_like_a_shell_does(bench: Bench, name: str) -> None:
    number = signal.Signals[name]
    outcome = await _bash(bench, f"echo up; kill -{number} $$")
    end = f"Command exited with code {128 + number} (killed by {name})"
    assert words(outcome) == f"up\n\n{end}"
    assert (details(outcome)["exit_code"], details(outcome)["signal"]) == (None, number)


async def test_a_program_killed_inside_the_command_is_an_exit_code(bench: Bench) -> None:
    outcome = await _bash(bench, "bash -c 'kill -KILL $$'; exit $?")
    assert words(outcome).endswith("Command exited with code 137")
    assert (details(outcome)["exit_code"], details(outcome)["signal"]) == (137, None)


async def test_binary_output_is_text_for_the_model_and_whole_in_the_file(bench: Bench) -> None:
    outcome = await _bash(bench, "head -c 300000 /dev/urandom | tee data; echo")
    kept = details(outcome)["full_output"]
    assert isinstance(kept, str)
    assert _bytes(Path(kept)) == _bytes(bench.root / "data") + b"\n"
    assert "\0" not in words(outcome)
    words(outcome).encode()  # no half characters


@pytest.mark.parametrize("whole", [0, 1], ids=["at once", "after a while"])
async def test_a_full_disk_costs_the_file_not_the_result(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    real, written = os.write, 0

    def write(file: int, data: bytes) -> int:
        nonlocal written
        if len(data) < 10_000:  # the loop's own messages to itself
            return real(file, data)
        written += 1
        if written > whole:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    outcome = await _bash(bench, "seq 1 500000")
    assert outcome.status == "ok"
    assert words(outcome).startswith("498001\n")
    end = "The full output was not kept: No space left on device]"
    if whole:
        end = f"Full output: {details(outcome)['full_output']}, cut: No space left on device]"
    else:
        assert details(outcome)["full_output"] is None
        assert list(bench.scratch.iterdir()) == []
    assert words(outcome).endswith(
        f"499999\n500000\n\n[Showing lines 498001-500000 of 500000. {end}"
    )


async def test_what_nobody_reads_is_no_reason_to_wait(bench: Bench) -> None:
    """More than a pipe holds, from a command that has no use for it itself."""
    outcome = await _bash(bench, "seq 1 100000 | (sleep 0.1; exit 0); echo ${PIPESTATUS[0]}")
    assert words(outcome) == f"{128 + signal.SIGPIPE}\n"


async def test_a_full_pipe_of_a_killed_command_is_still_told(bench: Bench) -> None:
    outcome = await _bash(bench, "trap '' TERM INT; while true; do echo y; done", timeout=0.3)
    assert details(outcome)["timed_out"] is True
    assert words(outcome).endswith("Command timed out after 0.3 seconds")
