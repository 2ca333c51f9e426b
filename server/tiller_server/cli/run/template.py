"""Process that the runs of `tiller run` are forked from: it has loaded everything, and has done nothing for anybody yet.

The daemon starts it (`daemon/runs.py`). It has one thread and an environment without keys. A child takes over the
streams, the folder, the environment and the limits of the client, and is a `tiller run` like any other from then on.
"""

import ctypes
import gc
import json
import logging
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import ClassVar, Final

import msgspec
import psutil

from agent_core.kernel.values import SecretValue, Value, threadsafe
from tiller_server.cli import command_line
from tiller_server.cli.exit_codes import DONE, FAILED, INTERRUPTED
from tiller_server.cli.run.caller import LIMITS, confinement
from tiller_server.cli.run.daemon_client import BEGUN, LENGTH_BYTES, STREAMS

USAGE: Final = 2
REQUEST_S: Final = 5.0
MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGE_BYTES: Final = 4096
PDEATHSIG: Final = 1
JOIN_S: Final = 10.0
COLLECT_S: Final = 0.05
"""Seconds between two collections while threads are waited for."""
REHEARSED: Final = ("run", "--no-session", "--trust", "hello", "--workspace")
LOADED: Final = (
    "agent_core.providers.adapters.anthropic_messages",
    "agent_core.providers.adapters.openai_completions",
    "agent_core.providers.adapters.openai_responses",
    "agent_core.providers.http.httpx_client",
    "httpcore",
    "tiller_server.cli.terminal.live_view",
    "tiller_server.cli.terminal.permission_prompt",
)
"""Modules that a rehearsal without a model and a terminal does not load."""


class RunRequest(SecretValue, frozen=True, kw_only=True):
    """A command line with what its process has from the shell; written by `caller.request`."""

    hidden: ClassVar = frozenset({"env"})

    arguments: Sequence[str]
    confinement: str
    encodings: Sequence[tuple[str, str]]
    """Encoding and error handler of each stream."""
    env: Mapping[str, str]
    ignored: Sequence[int]
    """Signals that the client ignores."""
    blocked: Sequence[int]
    limits: Sequence[tuple[int, int]]
    """Soft and hard limit of each of `caller.LIMITS`."""
    priority: int
    umask: int


class CannotTakeOver(Exception):
    """This process cannot be as the client is; the text is the reason."""


class ForkedRun(Value, frozen=True, kw_only=True):
    """A run, seen from its own process."""

    number: int
    client: socket.socket
    daemon: socket.socket


class ForkingTemplate:
    """Forks a run for each connection that the daemon passes on, and reports its end."""

    def __init__(self, daemon: socket.socket) -> None:
        """Create a template that has forked nothing yet.

        Args:
            daemon: Connection to the daemon, one message at a time.
        """
        self._daemon = daemon
        self._numbers: dict[int, int] = {}
        """Number of each run that goes on, by process id."""
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> ForkedRun | None:
        """Serve until the daemon has left; return a run in each process that is forked, None in this one."""
        _ = signal.signal(signal.SIGCHLD, _wake_up)
        _ = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        waiting = select.poll()
        waiting.register(self._daemon, select.POLLIN)
        waiting.register(self._wake, select.POLLIN)
        _ = self._daemon.send(b'{"loaded":1}')
        while True:
            is_readable = self._daemon.fileno() in dict(waiting.poll())
            with suppress(BlockingIOError):
                _ = os.read(self._wake, MAX_MESSAGE_BYTES)
            self._report_ended()
            if not is_readable:
                continue
            data, passed, _, _ = socket.recv_fds(self._daemon, MAX_MESSAGE_BYTES, 1)
            if not data:
                return None
            message: dict[str, int] = json.loads(data)
            if "fork" not in message:
                self._send_signal(message["run"], message["signal"])
            elif (run := self._fork(message["fork"], passed[0])) is not None:
                return run

    def _fork(self, number: int, connection: int) -> ForkedRun | None:
        template = os.getpid()
        pid = os.fork()
        if pid:
            os.close(connection)
            self._numbers[pid] = number
            return None
        _ = signal.set_wakeup_fd(-1)
        _ = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._wake)
        os.close(self._woken)
        os.setpgid(0, 0)
        _ = ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != template:
            os._exit(FAILED)
        return ForkedRun(
            number=number, client=socket.socket(fileno=connection), daemon=self._daemon
        )

    def _report_ended(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                number = self._numbers.pop(pid, None)
                if number is not None:
                    _ = self._daemon.send(json.dumps({"ended": number, "status": status}).encode())

    def _send_signal(self, number: int, signal_number: int) -> None:
        # A process that has ended stays a zombie, and its id ours, until `_report_ended` has seen it.
        for pid, other in self._numbers.items():
            if other != number:
                continue
            if signal_number == signal.SIGKILL:
                _kill_below(pid)
            # The terminal's own stop signal is discarded by a process that no shell watches over.
            wanted = signal.SIGSTOP if signal_number == signal.SIGTSTP else signal_number
            with suppress(ProcessLookupError):
                os.kill(pid, wanted)


def _wake_up(number: int, frame: FrameType | None) -> None:
    """Do nothing: `poll` returns for signals that have a handler."""
    _ = number, frame


def _kill_below(pid: int) -> None:
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()


def read_request(client: socket.socket) -> tuple[RunRequest, list[int]]:
    """Read the request of a client and its descriptors: the three streams and the folder. Blocking.

    Raises:
        OSError, ValueError: It does not come in time, or is none.
    """
    client.settimeout(REQUEST_S)
    head, passed, _, _ = socket.recv_fds(client, LENGTH_BYTES, len(STREAMS) + 1)
    length = int.from_bytes(head, "big")
    if len(head) != LENGTH_BYTES or len(passed) != len(STREAMS) + 1 or length > MAX_REQUEST_BYTES:
        message = "the client sent no request"
        raise ValueError(message)
    body = bytearray()
    # Not one byte more: what follows are signals, which the daemon reads.
    while len(body) < length and (data := client.recv(length - len(body))):
        body += data
    return msgspec.convert(json.loads(body), threadsafe(RunRequest)), passed


def take_over(request: RunRequest) -> None:
    """Make limits, priority and signals of this process those of the client.

    Raises:
        CannotTakeOver: The system forbids it, or the client is confined in another way.
    """
    if request.confinement != confinement():
        message = "the client has other rights, namespaces or another installation"
        raise CannotTakeOver(message)
    try:
        for which, limit in zip(LIMITS, request.limits, strict=True):
            resource.setrlimit(which, limit)
        os.setpriority(os.PRIO_PROCESS, 0, request.priority)
    except (OSError, ValueError) as error:
        message = f"the client has other limits ({error})"
        raise CannotTakeOver(message) from error
    _ = os.umask(request.umask)
    for number in request.ignored:
        _ = signal.signal(number, signal.SIG_IGN)
    _ = signal.pthread_sigmask(signal.SIG_SETMASK, request.blocked)


def take_streams(request: RunRequest, passed: Sequence[int]) -> None:
    """Make streams, folder and environment of this process those of the client."""
    *streams, folder = passed
    for number, place in zip(streams, STREAMS, strict=True):
        _ = os.dup2(number, place, inheritable=True)
    os.fchdir(folder)
    for number in passed:
        os.close(number)
    sys.stdin, sys.stdout, sys.stderr = (
        _opened(place, encoding, errors, env=request.env)
        for place, (encoding, errors) in zip(STREAMS, request.encodings, strict=True)
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    environment = os.environ  # noqa: TID251 - that of the template is nobody's
    environment.clear()
    environment.update(request.env)
    time.tzset()
    sys.argv = ["tiller", *request.arguments]


def _opened(place: int, encoding: str, errors: str, *, env: Mapping[str, str]) -> TextIOWrapper:
    is_input = place == STREAMS[0]
    raw = open(place, "rb" if is_input else "wb", closefd=False)  # noqa: SIM115 - a stream of the process
    is_by_line = place == STREAMS[-1] or raw.isatty()
    return TextIOWrapper(
        raw,
        encoding=encoding,
        errors=errors or None,
        newline=None if is_input else "\n",
        line_buffering=not is_input and is_by_line,
        write_through=not is_input and bool(env.get("PYTHONUNBUFFERED")),
    )


def run_forked(run: ForkedRun) -> int:
    """Run a command line in the process that was forked for it; return the exit code."""
    try:
        request, passed = read_request(run.client)
        take_over(request)
    except (CannotTakeOver, OSError, ValueError) as error:
        refusal = {"tiller": "refused", "why": str(error), "code": "otherProcess"}
        with suppress(OSError):
            run.client.sendall(json.dumps(refusal).encode() + b"\n")
        return FAILED
    _ = run.daemon.send(json.dumps({"begun": run.number}).encode())
    run.daemon.close()
    run.client.sendall(BEGUN)
    run.client.close()
    try:
        take_streams(request, passed)
        return command_line.main(request.arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def rehearse() -> None:
    """Run the command once without a model, and load the modules that this does not load."""
    for name in LOADED:
        _ = import_module(name)
    environment = os.environ  # noqa: TID251 - nothing but the template has this environment
    streams = sys.stdout, sys.stderr
    with (
        tempfile.TemporaryDirectory(prefix="tiller-") as home,
        open(os.devnull, "w", encoding="utf-8") as nothing,  # noqa: PTH123 - not a Path
    ):
        environment["HOME"] = home
        sys.stdout = sys.stderr = nothing
        try:
            _ = command_line.main((*REHEARSED, home))
        finally:
            sys.stdout, sys.stderr = streams
            del environment["HOME"]
    log = logging.getLogger()
    for handler in log.handlers[:]:
        log.removeHandler(handler)
    # A fork has only the thread that forks.
    join_others({threading.get_ident()})


def join_others(kept: Collection[int | None], *, limit_s: float = JOIN_S) -> None:
    """Wait until all threads but those with certain identifiers have ended.

    The worker threads of a loop end when the loop is freed. Cycles of frames and errors refer to it, and so do other
    threads until they have ended: it is collected again until then.

    Raises:
        RuntimeError: A thread has not ended within the limit; the daemon starts another template for the next run.
    """
    until_s = time.monotonic() + limit_s
    while others := [one for one in threading.enumerate() if one.ident not in kept]:
        if time.monotonic() > until_s:
            message = f"threads of the rehearsal have not ended: {[one.name for one in others]}"
            raise RuntimeError(message)
        others[0].join(COLLECT_S)
        del others  # a thread of anyio refers to the loop also when it has ended
        _ = gc.collect()


def main(arguments: Sequence[str]) -> int:
    """Be the template for the daemon at the other end of a descriptor; in a child, be the run."""
    if len(arguments) != 1 or not arguments[0].isdecimal():
        _ = sys.stderr.write("this program is started by the daemon of Tiller\n")
        return USAGE
    _ = signal.signal(signal.SIGINT, signal.default_int_handler)
    rehearse()
    # Not frozen: a run would count what is frozen, and touch all of it.
    _ = gc.collect()
    run = ForkingTemplate(socket.socket(fileno=int(arguments[0]))).serve()
    return DONE if run is None else run_forked(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
