"""The daemon as a program."""

import asyncio
import gc
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Final

from anyio import lowlevel
from typing_extensions import override

from tiller_server.daemon import paths
from tiller_server.daemon.daemon import Daemon
from tiller_server.daemon.errors import CannotServe
from tiller_server.daemon.private_dir import private_folder
from tiller_server.daemon.shim.discovery import PREPARE_RUNS
from tiller_server.process.config import ServerConfig, from_environment
from tiller_server.process.gc_tuning import IncrementalGc
from tiller_server.process.logs import hide_early, log_crashes
from tiller_server.process.memory_privacy import forbid_ptrace

SERVED: Final = 0
USAGE: Final = 2
CANNOT: Final = 3
LEVELS: Final = ("debug", "info", "warning", "error")
SWITCH_S: Final = 0.0005
"""How long the thread that writes a session waits for a busy loop at each call into the system; Python's 5 ms add up."""
LOOK_AFTER_S: Final = 1.0
"""How long after the daemon can be reached Python's collector begins to look."""

LEAVE_S: Final = 30.0
"""Longest shutdown in seconds. All acknowledged data is in the files by then, as it is when the process is killed."""

_log = logging.getLogger(__name__)

MAX_BYTES: Final = 2 * 1024 * 1024
OWN: Final = 0o600
FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: Sequence[str]) -> int:
    """Serve until nobody needs it; gives the exit code: 0, also when another one serves; 3 when there can be none."""
    prepares_runs = PREPARE_RUNS in arguments
    level = _level([word for word in arguments if word != PREPARE_RUNS])
    if level is None:
        _ = sys.stderr.write(
            f"usage: python -I -m tiller_server.daemon [{PREPARE_RUNS}] [--log-level {'|'.join(LEVELS)}]\n"
        )
        return USAGE
    if sys.platform == "win32":
        _ = sys.stderr.write(
            "tiller daemon: there is none on Windows; use tiller lsp --in-process\n"
        )
        return CANNOT
    sys.setswitchinterval(SWITCH_S)
    config = from_environment()
    try:
        _ = private_folder(paths.runtime_folder(config.env))
        log_to(Path(paths.log_path(config.env)), level=level)
        hide_early(lambda: config.env)
        log_crashes()
        # A daemon outlives what it was started in: it must not keep that folder busy.
        os.chdir("/")  # noqa: TID251 - see above; nothing here depends on the folder
        return asyncio.run(_run(config, prepares_runs=prepares_runs))
    except (CannotServe, ValueError, OSError) as error:
        _log.error("there is no daemon: %s", error)
        _ = sys.stderr.write(f"tiller daemon: {error}\n")
        return CANNOT


async def _run(config: ServerConfig, *, prepares_runs: bool) -> int:
    # Loads what waiting needs before clients can come: at the first pause it may find no descriptor left to be read.
    await lowlevel.checkpoint()
    loop = asyncio.get_running_loop()
    hiding = loop.run_in_executor(None, forbid_ptrace, config.env)
    looks = IncrementalGc()
    daemon = Daemon(
        config,
        on_loaded=looks.begin,
        on_leaving=_leave_in_time,
        prepares_runs=prepares_runs,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.leave)
    # Whoever started it may have a terminal that closes. Not `SIG_IGN`: commands would inherit that.
    signal.signal(signal.SIGHUP, _stay)
    tidying = asyncio.create_task(looks.keep_tidy(daemon.is_working))  # noqa: TID251 - ended below
    try:
        if not await daemon.run(opened=_opened):
            _log.info("another daemon serves already")
    finally:
        _ = tidying.cancel()
        await hiding
    return SERVED


def _stay(number: int, frame: FrameType | None) -> None:
    _ = number, frame


def _leave_in_time() -> None:
    """See to it that the process ends, whatever does not: editors would wait for a daemon that never comes."""
    timer = threading.Timer(LEAVE_S, _give_up)
    timer.daemon = True
    timer.start()


def _give_up() -> None:
    _log.critical("something does not end within %g s: the daemon leaves without it", LEAVE_S)
    os._exit(CANNOT)


def _opened() -> None:
    _let_go_of_starter()
    # The program holds it off while it is loaded; the first client is served before it looks.
    _ = asyncio.get_running_loop().call_later(LOOK_AFTER_S, gc.enable)


def _let_go_of_starter() -> None:
    """Redirect standard error to the log file: until now the process that started this one has read it."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler) and handler.stream:
            _ = os.dup2(handler.stream.fileno(), 2)


def _level(arguments: Sequence[str]) -> str | None:
    match list(arguments):
        case []:
            return "info"
        case ["--log-level", level] if level.lower() in LEVELS:
            return level.lower()
        case [word] if word.startswith("--log-level=") and word.partition("=")[2] in LEVELS:
            return word.partition("=")[2]
        case _:
            return None


class _OwnLog(RotatingFileHandler):
    """Writes to a file that nobody else may read, and begins a new one when it has grown."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8")
        self.setFormatter(logging.Formatter(FORMAT))

    @override
    def _open(self) -> io.TextIOWrapper:
        # Not by the umask: tools inherit it.
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, OWN)
        os.fchmod(fd, OWN)
        return os.fdopen(fd, "a", encoding="utf-8", errors="replace")


def log_to(path: Path, *, level: str) -> None:
    """Write all of this process's log there from now on. Blocking."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.addHandler(_OwnLog(path))
    root.setLevel(level.upper())
    # At lower levels it writes down whole messages, and a dozen lines for every client.
    logging.getLogger("pygls").setLevel(max(logging.WARNING, root.level))
