"""`tiller lsp`: what an editor spawns. Serves one client over standard input and output."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence

from server.cli.crashes import log_crashes
from server.cli.own_process import hide
from server.lsp.app import App
from server.lsp.config import from_environment
from server.lsp.redacted_log import hide_early
from server.lsp.runtime import Runtime
from server.lsp.streams import stdio_streams

USAGE = """usage: tiller lsp [--in-process] [--log-file FILE] [--log-level LEVEL]

Serve an editor over standard input and output.

  --in-process       run the agent in this process (until there is a daemon this is always so)
  --log-file FILE    write the log there instead of to standard error
  --log-level LEVEL  debug, info, warning (the default) or error

example, in Neovim:  vim.lsp.start({ name = "tiller", cmd = { "tiller", "lsp" }, root_dir = vim.fn.getcwd() })
"""
LEVELS = ("debug", "info", "warning", "error")
USAGE_ERROR = 2
TERMINATED = 143
SWITCH_S = 0.0005
"""How long the thread that writes a session waits for a busy loop at each call into the system; Python's 5 ms add up."""


def main(arguments: Sequence[str]) -> int:
    """Serve until the client leaves; gives the exit code."""
    options = _parse(list(arguments))
    if isinstance(options, int):
        return options
    sys.setswitchinterval(SWITCH_S)
    log_file, level = options
    try:
        if log_file is not None:
            # A log is for its user's eyes; one that is there already keeps the mode it was given.
            os.close(os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        logging.basicConfig(
            filename=log_file,
            level=level.upper(),
            format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        )
        hide_early(lambda: from_environment().env)
        log_crashes()
    except OSError as error:
        return _wrong(f"the log file {log_file!r} cannot be written ({error.strerror})")
    return asyncio.run(_serve())


async def _serve() -> int:
    reader, sink = await stdio_streams()
    # Beside the first answer: it costs some milliseconds, and no tool runs before that.
    hiding = asyncio.get_running_loop().run_in_executor(None, hide)
    try:
        async with Runtime(from_environment()) as runtime:
            app = App(runtime)
            _end_on_sigterm(app)
            return await app.connection.serve(reader, sink, parent="watch")
    finally:
        await hiding


def _end_on_sigterm(app: App) -> None:
    """Settle as if the client had left: a run that is only killed leaves its processes behind."""
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, app.connection.close, TERMINATED)


def _parse(arguments: list[str]) -> tuple[str | None, str] | int:
    """Read the few options by hand: argparse alone would cost an editor 7 ms."""
    log_file: str | None = None
    level = "warning"
    while arguments:
        word = arguments.pop(0)
        name, _, value = word.partition("=")
        match name:
            case "--in-process" | "--stdio":
                continue
            case "-h" | "--help":
                _ = sys.stdout.write(USAGE)
                return 0
            case "--log-file" | "--log-level":
                value = value or (arguments.pop(0) if arguments else "")
            case _:
                return _wrong(f"unknown option {word!r}")
        if not value:
            return _wrong(f"{name} needs a value")
        if name == "--log-file":
            log_file = value
        elif value.lower() in LEVELS:
            level = value
        else:
            return _wrong(f"--log-level must be one of {', '.join(LEVELS)}, got {value!r}")
    return log_file, level


def _wrong(what: str) -> int:
    _ = sys.stderr.write(f"tiller lsp: {what}; see tiller lsp --help\n")
    return USAGE_ERROR
