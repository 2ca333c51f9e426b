"""`tiller run` through the daemon: each run has the streams, folder and environment of its caller, and ends with it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.clients.daemons import log_of
from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.programs.daemon_runs import ask_run, serving_runs
from tests.support.programs.terminal import running, tiller
from tests.support.session.session_files import checked_entries, runs, said
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(120),
    pytest.mark.starts,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux passes runs on"),
]

SLEEP = ("bash", {"command": "sleep 600 & sleep 600"})
SHOW = ("bash", {"command": "pwd; umask; ulimit -n; echo $LANGUAGE"})
OURS = ("tiller_server", "agent_core")
COUNTED = """
import sys
from tiller_server.cli.entry import main
code = main(["run", "--no-session", "hi"])
names = [one for one in sys.modules if one.partition(".")[0] in {"tiller_server", "agent_core"}]
heavy = [one for one in ("asyncio", "anyio", "argparse", "httpx", "msgspec", "pydantic", "pygls") if one in sys.modules]
sys.stderr.write(f"{code} {len(names)} {heavy}")
"""


@pytest.fixture
def served(ground: Ground) -> Iterator[Ground]:
    """Return a ground whose runs go on below the daemon."""
    with serving_runs(ground) as given:
        yield given


def test_the_client_imports_hardly_anything_and_the_run_is_below_the_daemon(
    served: Ground,
) -> None:
    served.provider.script([says("hello")])
    ended = subprocess.run(
        [sys.executable, "-c", COUNTED],
        cwd=served.root,
        env=dict(served.env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=40,
        check=False,
    )
    assert ended.stdout == b"hello\n"
    code, count, heavy = ended.stderr.decode().splitlines()[-1].split(maxsplit=2)
    print(f"{count} modules of ours in the client")
    assert (code, heavy) == ("0", "[]")
    assert int(count) <= 40


def test_killing_the_client_cancels_the_run_and_ends_its_processes(served: Ground) -> None:
    served.provider.script([calls(SLEEP), says("never said")])
    with running(served, ["run", "--json", "sleep"]) as command:
        command.until("tool.running")
        sleepers = processes_with("sleep", "600", below=served.runs_below, at_least=2)
        assert served.runs_below is not None
        (template,) = psutil.Process(served.runs_below).children()
        (run,) = template.children()
        command.send(signal.SIGKILL)
        assert wait_gone({*sleepers, run.pid}, timeout_s=15) == set()
    assert runs(checked_entries(*served.sessions()))[-1][1] == "cancelled"


def test_a_closed_standard_output_ends_the_run_as_in_the_process_itself(served: Ground) -> None:
    endings: list[tuple[int, list[str]]] = []
    for way in ([], ["--no-daemon"]):
        served.provider.script([says("hello")])
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as out:
            ended = subprocess.run(
                [*TILLER, "run", *way, "hi"],
                cwd=served.root,
                env=dict(served.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=40,
                check=False,
            )
        last = ended.stderr.decode().splitlines()[-1]
        endings.append((ended.returncode, [last]))
    assert endings[0] == endings[1]
    assert endings[0][0] == 1
    assert "standard output was closed by its reader" in endings[0][1][0]


def test_two_runs_side_by_side_have_the_folder_the_environment_and_the_limits_of_their_callers(
    served: Ground, tmp_path: Path
) -> None:
    started: list[tuple[subprocess.Popen[bytes], Path]] = []
    # Both have asked before the first is answered: else one of them would get the answers of both.
    begun = {**calls(SHOW), "delay_s": 2}
    served.provider.script([begun, begun, says("one"), says("two")])
    for name, umask in (("first", 0o022), ("second", 0o077)):
        folder = tmp_path / name
        folder.mkdir()
        limits = f'umask {umask:04o}; ulimit -n {500 + umask}; exec "$@"'
        started.append(
            (
                subprocess.Popen(
                    ["bash", "-c", limits, "bash", *TILLER, "run", "--json", "--trust", "look"],
                    cwd=folder,
                    env={
                        **served.env,
                        "LANGUAGE": f"of_{name}",
                        "SOME_API_KEY": f"key-of-{name}-1234567890",
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                ),
                folder,
            )
        )
    for (process, folder), umask in zip(started, (0o022, 0o077), strict=True):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert f"{folder}\\n{umask:04o}\\n{500 + umask}\\nof_{folder.name}".encode() in out
        other = "second" if folder.name == "first" else "first"
        assert f"of_{other}".encode() not in out
    assert "key-of-" not in log_of(served.env)


@pytest.mark.parametrize(
    ("version", "answer"), [("0.1.0", "ready"), ("0.0.9", "version"), ("9.9.9", "leaving")]
)
def test_only_a_client_of_the_same_version_is_served(
    served: Ground, version: str, answer: str
) -> None:
    assert ask_run(served.env, version=version) == answer


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["--no-daemon"], {}), ([], {"CI": "true"}), ([], {"PYTHONWARNINGS": "ignore"})],
    ids=["--no-daemon", "CI", "variable-of-Python"],
)
def test_a_run_goes_on_in_its_own_process_where_that_is_asked_for(
    served: Ground, arguments: list[str], variables: dict[str, str]
) -> None:
    served.provider.script([calls(SLEEP)])
    own = Ground(
        dirs=served.dirs,
        env={**served.env, **variables},
        provider=served.provider,
        root=served.root,
    )
    with running(own, ["run", "--json", *arguments, "sleep"]) as command:
        command.until("tool.running")
        assert processes_with("sleep", "600", below=command.pid, at_least=2)
        command.send(signal.SIGTERM)
        assert command.end().code == 143


def test_a_run_that_the_daemon_cannot_serve_goes_on_in_its_own_process(ground: Ground) -> None:
    ground.provider.script([says("hello")])
    assert tiller(ground, "run", "hi").out == "hello\n"


def test_a_daemon_that_stops_cancels_its_runs(served: Ground) -> None:
    served.provider.script([calls(SLEEP)])
    with running(served, ["run", "--json", "sleep"]) as command:
        command.until("tool.running")
        busy = tiller(served, "daemon", "stop")
        assert (busy.code, "1 session has a run going on" in busy.err) == (1, True)
        assert tiller(served, "daemon", "stop", "--force").code == 0
        assert command.end().code == 143
    assert runs(checked_entries(*served.sessions()))[-1][1] == "cancelled"


@pytest.mark.parametrize("way", [[], ["--no-daemon"]], ids=["daemon", "process"])
def test_a_detached_run_goes_on_when_its_command_has_ended(served: Ground, way: list[str]) -> None:
    served.provider.script([calls(("bash", {"command": "sleep 2; pwd"})), says("all done")])
    begun = tiller(served, "run", "--detach", *way, "go")
    assert (begun.code, begun.err) == (0, "")
    first, see, stop = begun.out.splitlines()
    begins = re.fullmatch(r"session (\S+) goes on in process (\d+)", first)
    assert begins is not None
    session, pid = begins.groups()
    assert (see, stop) == (f"see it:  tiller sessions show {session}", f"stop it: kill {pid}")
    assert wait_gone({int(pid)}, timeout_s=30) == set()
    (file,) = served.sessions()
    assert said(checked_entries(file), "assistant")[-1] == "all done"


def test_a_detached_run_that_cannot_begin_reports_why(served: Ground) -> None:
    refused = tiller(served, "run", "--detach", "--model", "nobody/none", "go")
    assert refused.code in {1, 2}
    assert (refused.out, "nobody/none" in refused.complaint) == ("", True)
    alone = tiller(served, "run", "--detach", "--no-session", "go")
    assert alone.code == 2
    assert "--detach needs a session that is kept" in alone.complaint
