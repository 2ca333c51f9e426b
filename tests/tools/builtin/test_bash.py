"""The tool bash: the end of what a command wrote, and nothing left running."""

import re
import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest
from typing_extensions import override

from agent_core.tools.runner import ToolOutcome
from tests.support.harness.sizes import at_size
from tests.tools.conftest import WITH_AND_WITHOUT, Bench, details, words

pytestmark = WITH_AND_WITHOUT


async def _bash(bench: Bench, command: str, **more):
    return await bench.run("bash", command=command, **more)


def _kept(outcome: ToolOutcome) -> Path:
    """Give the file with the whole output."""
    path = details(outcome)["full_output"]
    assert isinstance(path, str)
    return Path(path)


# Running


async def test_a_command_that_writes_colours_gives_plain_text_and_names_its_colours(
    bench: Bench,
) -> None:
    outcome = await _bash(bench, r"printf 'a \033[1;31mred\033[0m b\n'")
    assert words(outcome) == "a red b\n"
    assert details(outcome)["colors"] == [[2, 5, "1;31"]]


async def test_a_command_gives_its_output(bench: Bench) -> None:
    outcome = await _bash(bench, "echo hello")
    assert (outcome.status, words(outcome)) == ("ok", "hello\n")
    shown = {name: value for name, value in details(outcome).items() if name != "duration_ms"}
    assert shown == {
        "command": "echo hello",
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "truncated": False,
        "full_output": None,
    }
    assert isinstance(details(outcome)["duration_ms"], int)


async def test_a_failure_is_an_error_with_its_code(bench: Bench) -> None:
    outcome = await _bash(bench, "exit 1")
    assert (outcome.status, words(outcome)) == (
        "error",
        "(no output)\n\nCommand exited with code 1",
    )
    outcome = await _bash(bench, "echo some; no-such-command")
    assert words(outcome).startswith("some\n")
    assert words(outcome).endswith("not found\n\nCommand exited with code 127")
    assert details(outcome)["exit_code"] == 127


async def test_a_prefix_comes_before_every_command(bench: Bench) -> None:
    bench.options["prefix"] = "export TEST_VAR=hello"
    assert words(await _bash(bench, "echo $TEST_VAR")) == "hello\n"


async def test_prefix_and_command_write_both(bench: Bench) -> None:
    bench.options["prefix"] = "echo prefix_output"
    assert words(await _bash(bench, "echo command_output")) == "prefix_output\ncommand_output\n"


@pytest.mark.parametrize("text", ["-x", "+x", "-c true", "--version", "-"])
async def test_what_begins_as_an_option_is_a_command_all_the_same(bench: Bench, text: str) -> None:
    outcome = await _bash(bench, text)
    assert (details(outcome)["exit_code"], "command not found" in words(outcome)) == (127, True)
    bench.options["prefix"] = text
    assert "\non\n" in words(await _bash(bench, "echo on"))


async def test_a_command_that_writes_nothing_says_so(bench: Bench) -> None:
    assert words(await _bash(bench, "true")) == "(no output)"


async def test_it_works_in_the_root(bench: Bench) -> None:
    assert words(await _bash(bench, "pwd")) == f"{bench.root}\n"


# Errors


async def test_a_command_that_takes_too_long_is_ended(bench: Bench) -> None:
    outcome = await _bash(bench, "echo begun; sleep 5", timeout=1)
    assert (outcome.status, words(outcome)) == (
        "error",
        "begun\n\nCommand timed out after 1 seconds",
    )
    assert (details(outcome)["timed_out"], details(outcome)["exit_code"]) == (True, None)


async def test_there_is_a_time_limit_without_asking(bench: Bench) -> None:
    bench.options["timeoutS"] = 0.2
    assert words(await _bash(bench, "sleep 5")) == (
        "(no output)\n\nCommand timed out after 0.2 seconds"
    )


@pytest.mark.parametrize("limit", [0, -1, "soon", 1e12, "nan", True])
async def test_an_odd_time_limit_is_told(bench: Bench, limit) -> None:
    outcome = await _bash(bench, "true", timeout=limit)
    assert words(outcome).startswith('Validation failed for tool "bash":\n  - timeout: ')


async def test_a_missing_folder_is_named(bench: Bench) -> None:
    gone = Path("/this/directory/does/not/exist")
    bench.workspace = replace(bench.workspace, roots=(gone,))
    outcome = await _bash(bench, "echo test")
    assert (outcome.status, words(outcome)) == (
        "error",
        f"Working directory does not exist: {gone}",
    )


async def test_a_missing_shell_is_named(bench: Bench) -> None:
    bench.options["shellPath"] = "/no/such/shell"
    outcome = await _bash(bench, "echo test")
    assert (outcome.status, words(outcome)) == (
        "error",
        "Program not found: /no/such/shell (ENOENT)",
    )


async def test_a_signal_is_named(bench: Bench) -> None:
    outcome = await _bash(bench, "kill -9 $$")
    assert words(outcome).endswith("Command exited with code 137 (killed by SIGKILL)")
    assert (details(outcome)["exit_code"], details(outcome)["signal"]) == (None, signal.SIGKILL)


# Output


async def test_of_long_output_the_end_is_given_and_all_of_it_kept(bench: Bench) -> None:
    outcome = await _bash(bench, "seq 1 50000")
    path = _kept(outcome)
    assert words(outcome).endswith(
        f"49999\n50000\n\n[Showing lines 48001-50000 of 50000. Full output: {path}]"
    )
    assert words(outcome).startswith("48001\n")
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 50001))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.parent == bench.scratch
    assert details(outcome)["truncation"]["total_lines"] == 50000


async def test_beyond_fifty_kilobytes_there_is_a_file(bench: Bench) -> None:
    outcome = await _bash(bench, "for i in $(seq 1 80); do printf '%01023d\\n' $i; done")
    path = _kept(outcome)
    assert words(outcome).endswith(
        f"\n\n[Showing lines 31-80 of 80 (50.0KB limit). Full output: {path}]"
    )
    assert path.stat().st_size == 80 * 1024


async def test_short_output_needs_no_file(bench: Bench) -> None:
    outcome = await _bash(bench, "seq 1 2000")
    assert details(outcome)["full_output"] is None
    assert words(outcome) == "".join(f"{n}\n" for n in range(1, 2001))
    assert not bench.scratch.exists()


async def test_one_endless_line_is_cut_at_its_beginning(bench: Bench) -> None:
    outcome = await _bash(bench, "echo first; head -c 300000 /dev/zero | tr '\\0' x")
    path = _kept(outcome)
    assert words(outcome) == (
        "x" * 51_200 + f"\n\n[Showing last 50.0KB of line 2 (line is 293.0KB). Full output: {path}]"
    )


async def test_output_and_errors_are_both_there(bench: Bench) -> None:
    assert words(await _bash(bench, "echo out && echo err >&2")) == "out\nerr\n"


async def test_a_cut_never_breaks_a_character(bench: Bench) -> None:
    outcome = await _bash(bench, "for i in {1..9000}; do printf 你好世界; done; echo")
    text = words(outcome).partition("\n\n[")[0]
    assert set(text) == set("你好世界")
    assert len(text.encode()) in range(51_198, 51_201)


async def test_characters_survive_the_borders_of_chunks(bench: Bench) -> None:
    command = """python3 -c "print('你好🌍' * 6000)" """
    outcome = await _bash(bench, command)
    path = _kept(outcome)
    assert path.read_text(encoding="utf-8") == "你好🌍" * 6000 + "\n"
    assert "\ufffd" not in words(outcome) + "".join(bench.shown)


async def test_bytes_that_are_no_text_are_marked(bench: Bench) -> None:
    assert words(await _bash(bench, "printf 'a\\xff\\0b\\n'")) == "a\ufffd<U+0000>b\n"


async def test_the_count_of_lines_is_exact(bench: Bench) -> None:
    outcome = await _bash(bench, "seq 1 2150")
    assert "[Showing lines 151-2150 of 2150. " in words(outcome)
    outcome = await _bash(bench, "seq 1 2150; printf end")
    assert "[Showing lines 152-2151 of 2151. " in words(outcome)


async def test_people_see_the_output_while_it_comes(bench: Bench) -> None:
    seen = anyio.Event()

    class Shown(list[str]):
        @override
        def append(self, object: str, /) -> None:
            super().append(object)
            seen.set()

    bench.shown = Shown()
    done = anyio.Event()

    async def run() -> None:
        await _bash(bench, "echo early; while [ ! -e go ]; do sleep 0.01; done; echo late")
        done.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await seen.wait()
            assert not done.is_set()
            bench.put("go", "")
    assert "".join(bench.shown) == "early\nlate\n"


async def test_fast_output_is_shown_in_few_pieces(bench: Bench) -> None:
    await _bash(bench, "seq 1 300000")
    assert len(bench.shown) < 50
    assert sum(map(len, bench.shown)) < 50 * 33_000
    assert bench.shown[-1].endswith("300000\n")


async def test_without_a_place_for_the_file_the_output_still_comes(bench: Bench) -> None:
    bench.root.parent.joinpath("outputs").write_text("in the way")
    outcome = await _bash(bench, "seq 1 3000")
    assert outcome.status == "ok"
    assert re.search(
        r"\n\n\[Showing lines 1001-3000 of 3000. The full output was not kept: File exists\]$",
        words(outcome),
    )


FLOODS = {
    "one line": "head -c {size} /dev/zero | tr '\\0' a",
    "lines": "yes 'a line that is about as long as lines are' | head -c {size}",
}


@pytest.mark.timeout(at_size(ci=60, campaign=300))
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a while")
@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_is_held_in_little_memory(bench: Bench, flood: str) -> None:
    size = at_size(ci=200_000_000, campaign=1_000_000_000)
    await _bash(bench, "seq 1 100000")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # noqa: ASYNC240 - no disk
    before = psutil.Process().memory_info().rss
    outcome = await _bash(bench, FLOODS[flood].format(size=size))
    assert _peak_bytes() - before < 20_000_000
    assert _kept(outcome).stat().st_size == size


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024
