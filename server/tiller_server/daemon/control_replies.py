"""Answers of the daemon to questions about itself. Pure, except for reading the current state."""

import json
import os
from dataclasses import asdict, dataclass

from tiller_server.daemon.admission.handshake import DaemonCommand
from tiller_server.lsp.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonState:
    """State of a daemon."""

    pid: int
    version: str
    since_ms: int
    """When it was started, in Unix milliseconds."""
    connections: int
    sessions: int
    working: int
    """Sessions in which something goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReply:
    """An answer, and what follows it."""

    line: bytes
    leaves: bool = False


def status_of(
    runtime: Runtime, *, version: str, since_ms: int, connections: int, runs: int
) -> DaemonState:
    """Look at what goes on; `runs` counts those of `tiller run`, each with a session of its own."""
    return DaemonState(
        pid=os.getpid(),
        version=version,
        since_ms=since_ms,
        connections=connections,
        sessions=runtime.loaded() + runs,
        working=runtime.working() + runs,
    )


def answer(ask: DaemonCommand | None, status: DaemonState) -> ControlReply:
    """Return what a question deserves; `stop` is not obeyed while something goes on."""
    match ask:
        case "stop" if status.working:
            return ControlReply(line=_line("busy", status))
        case "stop" | "stopNow":
            return ControlReply(line=_line("stopping", status), leaves=True)
        case _:
            return ControlReply(line=_line("status", status))


def _line(word: str, status: DaemonState) -> bytes:
    return json.dumps({"tiller": word, **asdict(status)}).encode() + b"\n"
