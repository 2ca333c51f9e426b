"""`tiller daemon`: the process that serves this user's editors. Editors start it by themselves."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel import SystemClock
from agent_core.kernel.json import JsonValue, encode
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, INTERRUPTED, USAGE, complain
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.daemon import paths
from tiller_server.daemon.control_client import ask_daemon, start_and_wait, wait_until_gone
from tiller_server.daemon.shim.connection import Unreachable

EXAMPLE: Final = "examples: tiller daemon status · tiller daemon logs --follow · tiller daemon stop"
STOP_S: Final = 30.0
LAST_LINES: Final = 50
FOLLOW_S: Final = 0.25
READ_BYTES: Final = 256 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    _ = parser.add_argument(
        "action",
        choices=("start", "stop", "restart", "status", "metrics", "logs"),
        help="what to do with it",
    )
    _ = parser.add_argument(
        "--socket", metavar="PATH", help="the one that listens there [the user's own]"
    )
    _ = parser.add_argument("--json", action="store_true", help="status: as JSON")
    _ = parser.add_argument(
        "--force",
        action="store_true",
        help="stop, restart: also when runs go on; they are cancelled",
    )
    _ = parser.add_argument("--follow", action="store_true", help="logs: go on as lines come")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code: 1 for `status` and `stop` when no daemon runs."""
    if sys.platform == "win32":
        complain("daemon", "there is none on Windows; editors run tiller lsp --in-process")
        return FAILED
    env = dict(environment.variables)
    try:
        if options.socket is not None:
            env["TILLER_RUNTIME_DIR"] = _folder_of(options.socket)
        _ = paths.runtime_folder(env)
    except ValueError as error:
        complain("daemon", str(error))
        return USAGE
    try:
        return _act(options, env)
    except Unreachable as error:
        complain("daemon", str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _act(options: argparse.Namespace, env: Mapping[str, str]) -> int:
    match options.action:
        case "start":
            return _start(env)
        case "stop":
            return _stop(env, force=options.force)
        case "restart":
            return _restart(env, force=options.force)
        case "status":
            return _status(env, as_json=options.json)
        case "metrics":
            return _metrics(env)
        case _:
            return _logs(env, follow=options.follow)


def _folder_of(path: str) -> str:
    socket = Path(path).expanduser().absolute()
    if socket.name != paths.SOCKET:
        message = f"--socket is {path!r}, and a daemon's socket is called {paths.SOCKET}; name one"
        raise ValueError(message)
    return str(socket.parent)


def _start(env: Mapping[str, str]) -> int:
    if (existing := ask_daemon(env, "status")) is not None:
        _write_line(
            f"a daemon runs already: process {existing.get('pid')}, Tiller {existing.get('version')}"
        )
        return DONE
    asyncio.run(start_and_wait(env, SystemClock()))
    status = ask_daemon(env, "status") or {}
    _write_line(f"started: process {status.get('pid')}, at {paths.socket_path(env)}")
    return DONE


def _stop(env: Mapping[str, str], *, force: bool) -> int:
    reply = ask_daemon(env, "stopNow" if force else "stop")
    if reply is not None and reply.get("tiller") == "busy":
        working = _count(
            reply, "working", "session has a run going on", "sessions have runs going on"
        )
        if not _agrees(f"{working}; stop all the same and cancel them? [y/N] "):
            complain("daemon", f"{working}; wait for them, or run tiller daemon stop --force")
            return FAILED
        reply = ask_daemon(env, "stopNow")
    if reply is None:
        _write_line("no daemon runs")
        return FAILED
    if not asyncio.run(wait_until_gone(env, SystemClock(), within_s=STOP_S)):
        complain("daemon", f"process {reply.get('pid')} still settles its runs after {STOP_S:g} s")
        return FAILED
    attached = reply.get("connections")
    _write_line(
        "stopped" + ("" if not attached else "; an editor that needs it starts another one")
    )
    return DONE


def _restart(env: Mapping[str, str], *, force: bool) -> int:
    """Stop the daemon, if one runs, and start another; editors that were connected attach to it."""
    code = DONE if ask_daemon(env, "status") is None else _stop(env, force=force)
    return _start(env) if code == DONE else code


def _agrees(question: str) -> bool:
    """Ask at the terminal; without one nobody agrees."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    _ = sys.stdout.write(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _status(env: Mapping[str, str], *, as_json: bool) -> int:
    status = ask_daemon(env, "status")
    if as_json:
        speak_json()
        out: dict[str, JsonValue] = {
            "running": status is not None,
            "socket": paths.socket_path(env),
        }
        fields = {
            name: value for name, value in (status or {}).items() if isinstance(value, str | int)
        }
        out.update({name: value for name, value in fields.items() if name != "tiller"})
        _write_line(encode(out).decode())
        return FAILED if status is None else DONE
    if status is None:
        _write_line(f"no daemon runs (it would listen at {paths.socket_path(env)})")
        return FAILED
    connections = _count(status, "connections", "editor is connected", "editors are connected")
    sessions = _count(status, "sessions", "session is loaded", "sessions are loaded")
    working = _count(status, "working", "of them works", "of them work")
    _write_line(
        f"Tiller {status.get('version')}, process {status.get('pid')}, {_since(status.get('since_ms'))}"
    )
    _write_line(f"{connections}; {sessions}, {working}")
    _write_line(f"socket {paths.socket_path(env)}")
    return DONE


def _metrics(env: Mapping[str, str]) -> int:
    """Print what the daemon counts, in the text format of Prometheus."""
    reply = ask_daemon(env, "metrics")
    if reply is None:
        complain("daemon", "no daemon runs")
        return FAILED
    _ = sys.stdout.write(str(reply.get("text", "")))
    return DONE


def _count(status: Mapping[str, object], name: str, one: str, several: str) -> str:
    number = status.get(name)
    return f"{number} {one if number == 1 else several}"


def _since(since_ms: object) -> str:
    if not isinstance(since_ms, int):
        return "running"
    minutes = max(0, SystemClock().now_ms() - since_ms) // 60_000
    return f"running for {minutes} min" if minutes < 120 else f"running for {minutes // 60} h"  # noqa: PLR2004 - two hours


def _logs(env: Mapping[str, str], *, follow: bool) -> int:
    path = Path(paths.log_path(env))
    try:
        for text in _tail(path, follow=follow):
            _ = sys.stdout.write(text)
            sys.stdout.flush()
    except FileNotFoundError:
        _write_line(f"there is no log yet (it would be {path})")
        return FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        complain("daemon", f"the log {str(path)!r} cannot be read ({error.strerror})")
        return FAILED
    return DONE


def _tail(path: Path, *, follow: bool) -> Iterator[str]:
    """Return the last lines of a log, and what is added when it is followed; also when a new file takes its place."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        _ = file.seek(max(0, size - READ_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines(keepends=True)
        yield "".join(lines[-LAST_LINES:])
        while follow:
            if data := file.read():
                yield data.decode("utf-8", "replace")
                continue
            with suppress(FileNotFoundError):
                if _replaced(file.fileno(), path):
                    break
            time.sleep(FOLLOW_S)
    if follow:
        yield from _tail(path, follow=True)


def _replaced(fd: int, path: Path) -> bool:
    now, then = path.stat(), os.fstat(fd)
    return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino)


def _write_line(line: str) -> None:
    _ = sys.stdout.write(line + "\n")
