"""`tiller lsp`, and what it shares with `tiller acp`: the process that an editor starts. Serves one client over standard input and output."""

import os
import sys
import time

USAGE = """usage: tiller lsp [--in-process] [--log-file FILE] [--log-level LEVEL]

Serve an editor over standard input and output, through the daemon of this user; it is started when there is none.

  --in-process       run the agent in this process, without the daemon
  --log-file FILE    write the log there instead of to standard error; the daemon has its own
  --log-level LEVEL  debug, info, warning (the default) or error

example, in Neovim:  vim.lsp.start({ name = "tiller", cmd = { "tiller", "lsp" }, root_dir = vim.fn.getcwd() })
"""
LEVELS = ("debug", "info", "warning", "error")
NOTED = frozenset({"debug", "info", "warning"})
USAGE_ERROR = 2


class Options:
    """Options of the command line."""

    __slots__ = ("in_process", "level", "log_file", "newest", "protocol", "usage")

    def __init__(self, protocol: str, usage: str, newest: int) -> None:
        self.protocol = protocol
        """`lsp` or `acp`, also the name of the command."""
        self.usage = usage
        self.newest = newest
        """Newest version of ACP that is served."""
        self.in_process = False
        self.log_file: str | None = None
        self.level = "warning"


def main(
    arguments: list[str], *, protocol: str = "lsp", usage: str = USAGE, newest: int = 1
) -> int:
    """Serve until the client leaves; gives the exit code.

    Args:
        arguments: Arguments after the name of the command.
        protocol: `lsp` or `acp`.
        usage: Text of `--help`.
        newest: Newest version of ACP that is served.
    """
    options = _parse(list(arguments), Options(protocol, usage, newest))
    if isinstance(options, int):
        return options
    if options.log_file is not None:
        try:
            # A log is for its user's eyes; one that is there already keeps the mode it was given.
            os.close(os.open(options.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        except OSError as error:
            return _wrong(
                f"the log file {options.log_file!r} cannot be written ({error.strerror})", options
            )
    return _serve_here(options) if options.in_process else _serve(options)


def _serve(options: Options) -> int:
    # An editor waits for its first answer: nothing is imported that this one does not need.
    from tiller_server.daemon.shim import shim  # noqa: PLC0415 - see above

    def note(text: str) -> None:
        if options.level in NOTED:
            _note(text, options)

    try:
        env = dict(os.environ)  # noqa: TID251 - the one place of the shim
        if options.protocol == "acp":
            from tiller_server.daemon.shim import acp_shim  # noqa: PLC0415 - see above

            return acp_shim.serve(env, cwd=_folder(), note=note, newest=options.newest)
        return shim.serve(env, cwd=_folder(), note=note)
    except shim.Unserved as error:
        note(f"serving without the daemon: {error}")
        tell = f"Tiller runs without its daemon: {error}" if error.code == "busyOlder" else None
        return _serve_here(options, first_bytes=error.first_bytes, tell=tell)
    except OSError as error:
        return _wrong(f"standard input or output cannot be used ({error.strerror})", options)


def _serve_here(options: Options, *, first_bytes: bytes = b"", tell: str | None = None) -> int:
    from tiller_server.cli import in_process_server  # noqa: PLC0415 - the agent's front end

    in_process_server.log_to(options.log_file, level=options.level)
    if options.protocol == "acp":
        return in_process_server.serve_acp(first_bytes=first_bytes, newest=options.newest)
    return in_process_server.serve(first_bytes=first_bytes, tell=tell)


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: TID251, PTH109 - told to the daemon once, as the editor's
    except OSError:
        return "/"  # the editor's folder has been deleted below it


def _note(text: str, options: Options) -> None:
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} WARNING tiller {options.protocol}: {text}\n"
    try:
        if options.log_file is None:
            sys.stderr.write(line)
            sys.stderr.flush()
            return
        with open(options.log_file, "a", encoding="utf-8") as log:  # noqa: PTH123 - pathlib costs 10 ms
            log.write(line)
    except (OSError, AttributeError):
        return  # a log that cannot be written, or no standard error


def _parse(arguments: list[str], options: Options) -> Options | int:
    """Read the few options by hand: argparse alone would cost an editor 7 ms."""
    while arguments:
        word = arguments.pop(0)
        name, _, value = word.partition("=")
        match name:
            case "--in-process":
                options.in_process = True
                continue
            case "--stdio":
                continue
            case "-h" | "--help":
                _ = sys.stdout.write(options.usage)
                return 0
            case "--log-file" | "--log-level":
                value = value or (arguments.pop(0) if arguments else "")
            case _:
                return _wrong(f"unknown option {word!r}", options)
        if not value:
            return _wrong(f"{name} needs a value", options)
        if name == "--log-file":
            options.log_file = value
        elif value.lower() in LEVELS:
            options.level = value.lower()
        else:
            return _wrong(f"--log-level must be one of {', '.join(LEVELS)}, got {value!r}", options)
    return options


def _wrong(what: str, options: Options) -> int:
    name = f"tiller {options.protocol}"
    _ = sys.stderr.write(f"{name}: {what}; see {name} --help\n")
    return USAGE_ERROR
