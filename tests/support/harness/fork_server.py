"""Starts the product's own Python commands by forking a process that has imported them already.

A start of `tiller` costs most of a second, nearly all of it imports; a fork of the template costs some milliseconds.
What a test sees is a process all the same: its own child, with its own arguments, environment, folder, descriptors and
signals. Only what belongs to the start itself is not seen: which modules are imported, and /proc's command line.

`install` replaces how `subprocess.Popen` starts such commands, so asyncio's and anyio's are covered too. Everything that
the template cannot imitate (other interpreters, other flags, other PYTHON* or locale variables) is started as before.
"""

import atexit
import ctypes
import io
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

REPOSITORY = Path(__file__).resolve().parents[3]
FORKED = ("tiller_server.cli.entry", "tiller_server.daemon", "tests.support.provider")
"""What may be forked: modules that are run with `python -m`."""

PRELOADED = (
    "coverage",
    "tiller_server.cli.command_execution",
    "tiller_server.cli.command_line",
    "tiller_server.cli.lsp_command",
    "tests.support.provider.server",
)
_PR_SET_CHILD_SUBREAPER = 36
_HEADER = struct.Struct("!I")
_FLAGS = frozenset({"-P"})
_START_VARIABLES = ("LANG", "LANGUAGE", "LC_", "PYTHON")


class _Request(NamedTuple):
    """What the child is to be: sent to the template as JSON beside its three descriptors."""

    module: str
    arguments: list[str]
    safe_path: bool
    folder: str
    env: dict[str, str]
    new_session: bool
    prepare: str | None
    umask: int


class _Template:
    """The process that is forked, seen from the worker of pytest that owns it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), str(REPOSITORY)],
                cwd="/",
                env={**env, "PYTHONDONTWRITEBYTECODE": env.get("PYTHONDONTWRITEBYTECODE", "")},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket = ours
        self._lock = threading.Lock()

    def fork(self, request: _Request, descriptors: Sequence[int]) -> int:
        """Give the number of a new child of this process."""
        body = json.dumps(request).encode()
        # For a moment the orphans of this process's descendants become its children: the middle process of the two that
        # the template forks ends, and leaves its child to us.
        with self._lock:
            _adopt(1)
            try:
                socket.send_fds(self._socket, [_HEADER.pack(len(body))], list(descriptors))
                self._socket.sendall(body)
                return _HEADER.unpack(_read(self._socket, _HEADER.size))[0]
            finally:
                _adopt(0)

    def close(self) -> None:
        """End the template; what was forked from it goes on."""
        self._socket.close()
        self._process.wait(10)


_templates: dict[tuple[tuple[str, str], ...], _Template] = {}
_enabled = [True]
_installed: list[bool] = []


def install() -> None:
    """Let the commands of `FORKED` be forked wherever this process starts them, where the system allows it."""
    if sys.platform != "linux" or _installed:
        return
    _installed.append(True)
    popen = cast("Any", subprocess.Popen)
    original = popen._execute_child

    def start(self: Any, args: Any, executable: Any, *rest: Any) -> None:
        if not _fork_into(self, args, executable, rest):
            original(self, args, executable, *rest)

    popen._execute_child = start
    atexit.register(_close)


def is_installed() -> bool:
    """Say whether commands are forked in this process."""
    return bool(_installed)


def use(enabled: bool) -> bool:
    """Fork from now on or not; gives what held before."""
    before = _enabled[0]
    _enabled[0] = enabled
    return before


def prepare(env: Mapping[str, str]) -> _Template:
    """Start the template for an environment, unless there is one: who comes first would wait for its imports."""
    key = tuple(sorted(one for one in env.items() if one[0].startswith(_START_VARIABLES)))
    if key not in _templates:
        _templates[key] = _Template(_without_coverage(env))
    return _templates[key]


def _close() -> None:
    for template in _templates.values():
        template.close()
    _templates.clear()


_FIELDS = [
    "preexec_fn",
    "close_fds",
    "pass_fds",
    "cwd",
    "env",
    "startupinfo",
    "creationflags",
    "shell",
    "p2cread",
    "p2cwrite",
    "c2pread",
    "c2pwrite",
    "errread",
    "errwrite",
    "restore_signals",
    "gid",
    "gids",
    "uid",
    "umask",
    "start_new_session",
    "process_group",
]


def _fork_into(popen: Any, args: Any, executable: Any, rest: tuple[Any, ...]) -> bool:
    """Start the command by a fork; False when it is none that can be."""
    if not _enabled[0] or len(rest) != len(_FIELDS) or executable is not None:
        return False
    given = dict(zip(_FIELDS, rest, strict=True))
    request = _request(args, given)
    if request is None:
        return False
    template = prepare(request.env)
    descriptors = [
        number if number != -1 else inherited
        for inherited, number in enumerate((given["p2cread"], given["c2pwrite"], given["errwrite"]))
    ]
    popen.pid = template.fork(request, descriptors)
    popen._child_created = True
    popen._close_pipe_fds(
        *(
            given[name]
            for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        )
    )
    return True


def _request(args: Any, given: Mapping[str, Any]) -> _Request | None:
    words = [os.fspath(word) for word in args] if isinstance(args, (list, tuple)) else []
    if words[:1] != [sys.executable] or "-m" not in words:
        return None
    at = words.index("-m")
    flags, module, arguments = words[1:at], words[at + 1], words[at + 2 :]
    unusual = ("pass_fds", "shell", "gid", "gids", "uid")
    if (
        module not in FORKED
        or not _FLAGS.issuperset(flags)
        or any(given[name] for name in unusual)
        or given["process_group"] != -1
        or not given["close_fds"]
    ):
        return None
    prepare = given["preexec_fn"]
    if prepare is not None and (
        not prepare.__module__.startswith("tests.support.") or "<" in prepare.__qualname__
    ):
        return None
    env = given["env"]
    return _Request(
        module=module,
        arguments=arguments,
        safe_path="-P" in flags,
        folder=os.fspath(given["cwd"] or Path.cwd()),
        env=dict(os.environ if env is None else env),  # noqa: TID251 - handed on, not read
        new_session=given["start_new_session"],
        prepare=None if prepare is None else f"{prepare.__module__}:{prepare.__qualname__}",
        umask=given["umask"],
    )


def _without_coverage(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith("COVERAGE_")}


def _adopt(flag: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0)


def _read(sock: socket.socket, size: int) -> bytes:
    whole = b""
    while len(whole) < size:
        part = sock.recv(size - len(whole))
        if not part:
            message = "the process that commands are forked from has ended"
            raise ConnectionError(message)
        whole += part
    return whole


# In the template.

_BOOT = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.support.harness.fork_server import serve
child = serve(int(sys.argv[1]))
if child is not None:
    child()
"""


def serve(descriptor: int) -> Callable[[], None] | None:
    """Fork a child for each request until the socket ends.

    Returns:
        In a child, what it has to do at the outermost level; None in the template, at its end.
    """
    import gc  # noqa: PLC0415 - the template's alone

    for name in PRELOADED:
        import_module(name)
    _import_all("agent_core")
    _import_all("tiller_server")
    gc.collect()
    gc.freeze()
    sock = socket.socket(fileno=descriptor)
    while True:
        head, descriptors, _, _ = socket.recv_fds(sock, _HEADER.size, 3)
        if not head:
            return None
        head += _read(sock, _HEADER.size - len(head)) if len(head) < _HEADER.size else b""
        request = _Request(*json.loads(_read(sock, _HEADER.unpack(head)[0])))
        ours, theirs = os.pipe()
        middle = os.fork()
        if middle == 0:
            child = os.fork()
            if child == 0:
                return lambda: _become(request, descriptors, theirs)
            os.write(theirs, _HEADER.pack(child))
            os._exit(0)
        os.close(theirs)
        for number in descriptors:
            os.close(number)
        os.waitpid(middle, 0)
        answer = os.read(ours, _HEADER.size)
        os.read(ours, 1)  # its end: the child is what was asked for, or is gone
        os.close(ours)
        sock.sendall(answer)


def _import_all(package: str) -> None:
    """Import every module of a package that can be imported without starting something."""
    import pkgutil  # noqa: PLC0415 - the template's alone

    for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if found.name.rpartition(".")[2] != "__main__" and found.name not in FORKED:
            with suppress(ImportError):  # an optional dependency
                import_module(found.name)


def _become(request: _Request, descriptors: Sequence[int], preparing: int) -> None:
    """Run what was asked for; `preparing` is closed when folder, session and signals are the child's own."""
    for number, given in enumerate([os.dup(one) for one in descriptors]):
        os.dup2(given, number)
    os.dup2(preparing, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()  # noqa: TID251 - the child's own
    os.environ.update(request.env)  # noqa: TID251 - the child's own
    os.chdir(request.folder)  # noqa: TID251 - the child is a process of its own
    if request.umask >= 0:
        os.umask(request.umask)
    if request.new_session:
        os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if request.prepare is not None:
        module, _, name = request.prepare.partition(":")
        getattr(import_module(module), name)()
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    os.close(3)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding=stream.encoding, errors=stream.errors, closefd=False)  # noqa: SIM115 - a descriptor, for the rest of the process
        for number, mode, stream in (
            (0, "r", sys.stdin),
            (1, "w", sys.stdout),
            (2, "w", sys.stderr),
        )
    )
    cast("io.TextIOWrapper", sys.stderr).reconfigure(line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc] - as at a start
    sys.path[0] = request.folder
    if request.safe_path:
        del sys.path[0]
    sys.argv[:] = [request.module, *request.arguments]
    sys.orig_argv[:] = [sys.executable, "-m", *sys.argv]
    _measure()
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        _leave(end.code)
    _leave(0)


def _leave(code: object) -> NoReturn:
    """End as an interpreter does, without taking the template's modules apart, which copies all their memory."""
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    cast("Any", threading)._shutdown()
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        code = code or 120
    os._exit((code or 0) & 0xFF)


def _measure() -> None:
    """Begin with coverage where the environment asks for it."""
    if any(name.startswith("COVERAGE_PROCESS") for name in os.environ):  # noqa: TID251 - the child's own
        from coverage import process_startup  # noqa: PLC0415 - only where it is wanted

        process_startup()
