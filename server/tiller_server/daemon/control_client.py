"""Functions of `tiller daemon`: query the daemon, start it, and wait for its end. Blocking."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from agent_core.kernel import Clock
from tiller_server.daemon import paths
from tiller_server.daemon.admission.handshake import DaemonCommand
from tiller_server.daemon.lockfile import owner
from tiller_server.daemon.shim.connection import SPOKEN, Unreachable, call
from tiller_server.daemon.shim.discovery import DaemonDiscovery

ANSWER_S: Final = 10.0
START_S: Final = 20.0
MAX_ANSWER_BYTES: Final = 64 * 1024


def ask_daemon(env: Mapping[str, str], ask: DaemonCommand) -> Mapping[str, object] | None:
    """Return the daemon's answer; None when there is none.

    Raises:
        Unreachable: There is one, or something in its place, that does not answer as it should.
    """
    found = call(env)
    if found is None:
        return None
    raw, token = found
    with socket.socket(fileno=raw.detach()) as sock:
        sock.settimeout(ANSWER_S)
        try:
            line = json.dumps({"v": SPOKEN, "token": token, "pid": os.getpid(), "ask": ask})
            sock.sendall(line.encode() + b"\n")
            return _answer(sock)
        except (OSError, ValueError) as error:
            message = f"the daemon does not answer ({error})"
            raise Unreachable(message) from error


def _answer(sock: socket.socket) -> Mapping[str, object]:
    read = b""
    while not read.endswith(b"\n") and len(read) < MAX_ANSWER_BYTES:
        data = sock.recv(MAX_ANSWER_BYTES)
        if not data:
            break
        read += data
    decoded: object = json.loads(read)
    if not isinstance(decoded, dict):
        message = "its answer is no object"
        raise ValueError(message)  # noqa: TRY004 - caught as what cannot be read
    answer = cast("dict[str, object]", decoded)
    if answer.get("tiller") == "refused":
        raise Unreachable(str(answer.get("why")), code=str(answer.get("code")))
    return answer


async def start_and_wait(env: Mapping[str, str], clock: Clock) -> None:
    """Start the daemon unless one answers, and wait until it does.

    Raises:
        Unreachable: There will be none.
    """
    search = DaemonDiscovery(env, clock=clock.monotonic_s)
    search.begin(within_s=START_S)
    while (found := search.look()) is None:
        await clock.sleep(search.again_s)
    found[0].close()


async def wait_until_gone(env: Mapping[str, str], clock: Clock, *, within_s: float) -> bool:
    """Wait until the daemon has let go of its lock; no when it has not in time."""
    lock = Path(paths.lock_path(env))
    until_s = clock.monotonic_s() + within_s
    while (holder := owner(lock)) is not None and holder:
        if clock.monotonic_s() >= until_s:
            return False
        await clock.sleep(0.05)
    return True
