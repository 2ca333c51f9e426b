"""What stands still is ended: one test alone, a worker with its stacks, or a run in which nothing happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT

pytestmark = pytest.mark.timeout(120)

CONFTEST = """
import os, time, pytest
from tests.support.harness import hangs

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(hangs.Limits(grace_s=0.5))
    else:
        here = os.getpid()
        workers = lambda: [int(pid) for pid in open(f"/proc/{here}/task/{here}/children").read().split()]
        config.pluginmanager.register(hangs.Stillness(workers, still_s=STILL_S, collecting_s=30))

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if item.get_closest_marker("never_begins"):
        time.sleep(1000)
    return (yield)
"""


def inner(folder: Path, tests: str, *, still_s: float = 30) -> "subprocess.CompletedProcess[str]":
    """Run tests of their own in two workers, of which a run needs at least one to go on."""
    (folder / "conftest.py").write_text(CONFTEST.replace("STILL_S", str(still_s)), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  never_begins: x\n", "utf-8")
    (folder / "test_it.py").write_text(tests, "utf-8")
    words = [
        "-n",
        "1",
        "--dist",
        "worksteal",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "-o",
        "faulthandler_timeout=0",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", *words, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # noqa: TID251 - handed on, not read
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_a_test_over_its_limit_fails_alone(tmp_path: Path) -> None:
    ran = inner(
        tmp_path,
        "import pytest, time\n"
        "@pytest.mark.timeout(0.3)\n"
        "def test_long(): time.sleep(1000)\n"
        "def test_after(): pass\n",
    )
    assert "FAILED test_it.py::test_long" in ran.stdout
    assert "1 failed, 1 passed" in ran.stdout
    assert "crashed" not in ran.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads the workers from /proc")
def test_a_test_that_cannot_be_interrupted_ends_its_worker_and_no_other_test(
    tmp_path: Path,
) -> None:
    ran = inner(
        tmp_path,
        "import pytest, signal, time\n"
        "def test_before(): pass\n"
        "@pytest.mark.timeout(0.3)\n"
        "def test_stuck():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    time.sleep(1000)\n"
        "def test_after(): pass\n"
        "def test_last(): pass\n",
    )
    assert "crashed while running" in ran.stdout
    assert "1 failed, 3 passed" in ran.stdout
    assert "in test_stuck" in ran.stderr
    assert re.search(r"the process of worker gw\d exited with code 1\n", ran.stderr)


def test_a_fixture_that_waits_for_a_test_over_its_limit_ends_the_worker_and_no_other_test(
    tmp_path: Path,
) -> None:
    ran = inner(
        tmp_path,
        "import anyio, pytest\n"
        "@pytest.fixture\n"
        "def anyio_backend(): return 'asyncio'\n"
        "@pytest.fixture\n"
        "async def server(): yield 1\n"
        "@pytest.mark.anyio\n"
        "@pytest.mark.timeout(0.5)\n"
        "async def test_long(server): await anyio.sleep_forever()\n"
        "def test_after(): pass\n",
    )
    assert "FAILED test_it.py::test_long" in ran.stdout
    assert "crashed while running 'test_it.py::test_long'" in ran.stdout
    assert "1 passed" in ran.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads the workers from /proc")
def test_a_run_in_which_nothing_happens_ends_with_its_stacks_and_what_failed_so_far(
    tmp_path: Path,
) -> None:
    ran = inner(
        tmp_path,
        "import pytest\n"
        "def test_wrong(): assert 1 == 2\n"
        "@pytest.mark.never_begins\n"
        "def test_never(): pass\n",
        still_s=3,
    )
    assert ran.returncode == pytest.ExitCode.INTERRUPTED
    assert "no test has run for 3 s: the run is ended" in ran.stderr
    assert "in pytest_runtest_protocol" in ran.stderr
    assert "FAILED test_it.py::test_wrong" in ran.stdout
