"""Hands a run to the daemon, prints what it sends, and detaches from it.

The process that runs reads and writes the streams of this one itself. Signals and the exit code are left for this one.
If the daemon cannot serve the run, that is no error: it takes place in this process.
"""

import os
import sys
import time
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from signal import (
    SIG_DFL,
    SIG_IGN,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGKILL,
    SIGTERM,
    SIGTSTP,
    getsignal,
    signal,
)
from typing import Final

from agent_core.kernel.errors import UsageError
from tiller_server.daemon.shim.connection import Unreachable, call, control_line

KILLED: Final = 128
"""With the number of a signal: the exit code of what it has ended."""
Report = Callable[[str], None]
"""Function that is called once with what the command writes; the run has no terminal from then on."""


def run_detached(work: Callable[[Report], int]) -> int:
    """Run work in a process that outlives this one; return when it has reported, or ended without a report.

    Called in a process with one thread. Returns in both processes: in the new one with the exit code of the work.

    Args:
        work: Work to run, without standard input. Before its report it writes to the streams of this process.

    Raises:
        UsageError: The system has no such processes.
    """
    if sys.platform == "win32":
        message = "--detach is not there on Windows; leave it out"
        raise UsageError(message)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        _ = os.dup2(nothing, 0)

        def report(text: str) -> None:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                _ = pipe.write(text)
            for stream in (1, 2):
                _ = os.dup2(nothing, stream)

        return work(report)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    if not text:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code if code >= 0 else KILLED - code
    _ = sys.stdout.write(text)
    sys.stdout.flush()
    return 0


ALONE = "--no-d"
"""`--no-daemon`, also when it is shortened."""
SWITCH = "TILLER_ALLOW_DEBUGGER"
HARMLESS = frozenset(
    {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
    }
)
"""Variables of Python that change nothing about a process which is there already, or are passed on with the streams."""
OWN_DESCRIPTORS = ("/dev/fd/", "/proc/")
READY = b'{"tiller":"ready"}\n'
BEGUN = b'{"tiller":"begun"}\n'
LENGTH_BYTES = 4
"""Before the request, its length; big-endian."""
NO_CI = ("", "0", "false")
STREAMS = (0, 1, 2)
ANSWER_S = 3.0
FOREGROUND_S = 0.1
FAILED = 1
LOST = "tiller run: the daemon ended before the run did; `tiller daemon logs` may say why, `tiller run --continue` goes on\n"


def run_in_daemon(arguments: Sequence[str], env: Mapping[str, str]) -> int | None:
    """Run a command line in a process of the daemon; return the exit code, None: it has to run in this process.

    Args:
        arguments: `run` and all that follows it.
        env: The environment of this process.
    """
    if not _may_ask(arguments, env):
        return None
    try:
        found = call(env)
    except Unreachable:
        return None
    if found is None:
        return None
    sock, token = found
    try:
        if not _is_begun(sock, token, arguments, env):
            sock.close()
            return None
    except OSError:  # it went away, or said nothing in time
        sock.close()
        return None
    return _wait(sock)


def start_for_next_time(arguments: Sequence[str], env: Mapping[str, str]) -> None:
    """Start a daemon in the background where a person sits and none answers; failures are left to the next command."""
    if not (_may_ask(arguments, env) and os.isatty(0) and os.isatty(2)):
        return
    from tiller_server.daemon.shim.discovery import PREPARE_RUNS, start_daemon  # noqa: PLC0415 - seldom needed

    try:
        found = call(env)
        if found is None:
            start_daemon(PREPARE_RUNS).close()
        else:
            found[0].close()
    except (Unreachable, OSError):
        return


def _may_ask(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether another process can stand in for this one."""
    if sys.platform != "linux" or env.get("CI", "").lower() not in NO_CI or env.get(SWITCH) == "1":
        return False
    if any(
        word.startswith(ALONE) or any(name in word for name in OWN_DESCRIPTORS)
        for word in arguments
    ):
        return False
    if any(name.startswith("PYTHON") and name not in HARMLESS for name in env):
        return False
    return all(_is_usable(number) for number in STREAMS)


def _is_usable(number: int) -> bool:
    """Return whether a stream is open and, if it is a terminal, ours to read."""
    try:
        _ = os.fstat(number)
        return not os.isatty(number) or os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        # A terminal that is not the controlling one has no foreground: it may be read by anybody who has it open.
        return os.isatty(number)


def _is_begun(sock: socket, token: str, arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """Introduce the run, and send all of it; return whether the daemon has accepted it.

    Raises:
        OSError: The daemon has gone, or does not answer.
    """
    from tiller_server.cli.run.caller import request  # noqa: PLC0415 - not without a daemon

    sock.settimeout(ANSWER_S)
    sock.sendall(control_line("run", token=token, pid=os.getpid()))
    body = request(arguments, env)
    if _line(sock) != READY:
        return False
    data = len(body).to_bytes(LENGTH_BYTES, "big") + body
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    passed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (*STREAMS, folder))
    sent = sock.sendmsg([data], [(SOL_SOCKET, SCM_RIGHTS, passed)])
    os.close(folder)
    sock.sendall(data[sent:])
    # Without a limit: a run that begins late must not take place here too.
    sock.settimeout(None)
    return _line(sock) == BEGUN


def _wait(sock: socket) -> int:
    """Forward signals until the run has ended; return its exit code, or end as it did when a signal has killed it."""
    _forward_signals(sock)
    line = _line(sock)
    if not line:
        _ = sys.stderr.write(LOST)
        return FAILED
    code = os.waitstatus_to_exitcode(int(line.rpartition(b":")[2].strip(b" }\n")))
    if code < 0:
        if -code != SIGKILL:
            _ = signal(-code, SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _forward_signals(sock: socket) -> None:
    def forward(number: int, _frame: object) -> None:
        with suppress(OSError):
            sock.sendall(bytes((number,)))

    def suspend(number: int, frame: object) -> None:
        forward(number, frame)
        _ = signal(SIGTSTP, SIG_DFL)
        os.kill(os.getpid(), SIGTSTP)
        _ = signal(SIGTSTP, suspend)
        # In the background it would read what is typed for the shell.
        while not all(_is_usable(fd) for fd in STREAMS):
            time.sleep(FOREGROUND_S)
        forward(SIGCONT, frame)

    for number in (SIGINT, SIGTERM, SIGHUP):
        if getsignal(number) != SIG_IGN or number != SIGHUP:
            _ = signal(number, forward)
    if getsignal(SIGTSTP) != SIG_IGN:
        _ = signal(SIGTSTP, suspend)


def _line(sock: socket) -> bytes:
    """Read a line, byte by byte: the bytes behind it are not for this process."""
    line = bytearray()
    while not line.endswith(b"\n") and (data := sock.recv(1)):
        line += data
    return bytes(line)
