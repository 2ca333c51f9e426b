"""A daemon that runs `tiller run`, ready to fork."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from tests.support.clients.daemons import DAEMON, hello
from tests.support.clients.server import Ground
from tiller_server.daemon import paths

BOTH_WAYS = ("process", "daemon") if sys.platform == "linux" else ("process",)
"""For `RUN_WAYS` of a module of tests/e2e: where its runs go on."""
READY_S = 60.0
LOOK_AGAIN_S = 0.05


@contextmanager
def serving_runs(ground: Ground) -> Generator[Ground]:
    """Start a daemon and wait until runs are forked from its template; it is stopped, and its runs with it."""
    # A variable of Python's or of a build server keeps a run in its own process.
    env = {
        name: text
        for name, text in ground.env.items()
        if name != "CI" and not name.startswith(("PYTHON", "COVERAGE"))
    }
    daemon = subprocess.Popen(
        [*DAEMON, "--prepare-runs"],
        env=env,
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    with daemon:
        try:
            _wait_ready(env)
            yield replace(ground, env=env, runs_below=daemon.pid)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(30)


def _wait_ready(env: Mapping[str, str]) -> None:
    until = time.monotonic() + READY_S
    while ask_run(env) != "ready":
        assert time.monotonic() < until, "the daemon does not get ready for runs"
        time.sleep(LOOK_AGAIN_S)
    # The run that was introduced to see this ends without a request.
    while ask(env, "status")["working"]:
        time.sleep(LOOK_AGAIN_S)


def ask_run(env: Mapping[str, str], **more: object) -> str:
    """Introduce a run and leave; give the daemon's answer: `ready`, or the code of a refusal, empty: nobody answers."""
    reply = ask(env, "run", **more)
    return str(reply.get("code", reply.get("tiller", "")))


def ask(env: Mapping[str, str], what: str, **more: object) -> dict[str, Any]:
    """Ask the daemon for something and leave; give its answer, {}: nobody answers."""
    with socket.socket(socket.AF_UNIX) as sock, suppress(OSError):
        sock.connect(paths.socket_path(env))
        sock.sendall(hello(env, ask=what, **more))
        return json.loads(sock.makefile("rb").readline())
    return {}
