"""Answers of the daemon to questions about itself. Pure, except for reading the current state."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

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


METRICS: Final[Mapping[str, str]] = {
    "resident_memory_bytes": "Memory of the daemon.",
    "start_time_seconds": "When the daemon was started, in Unix seconds.",
    "clients": "Editors that are connected.",
    "sessions": "Sessions that are loaded, and runs of tiller run.",
    "sessions_working": "Those of them in which something goes on.",
    "sessions_waiting_for_user": "Sessions in which a person is asked.",
    "runs_forked": "Runs of tiller run that the daemon has started and that go on.",
    "queued_messages": "Messages of users that wait for their run.",
    "outgoing_frames": "Messages that wait for an editor to read them.",
    "outgoing_bytes": "Their size.",
    "input_tokens_total": "Tokens sent to models by sessions of this process, cached ones included.",
    "output_tokens_total": "Tokens that models answered.",
    "cost_usd_total": "Cost of calls whose price is known, in US dollars.",
    "telemetry_queue": "Spans and measurements that wait for the collector.",
    "telemetry_spans_sent_total": "Spans that the collector took.",
    "telemetry_dropped_total": "Spans and measurements that were lost.",
}
"""Help of each metric; one whose name ends in `_total` is a counter, the others are gauges."""


def metrics(status: DaemonState, figures: Mapping[str, float]) -> str:
    """Return the figures of a daemon in the text format of Prometheus (version 0.0.4).

    Args:
        status: State of the daemon.
        figures: Other figures, by the name of the metric without `tiller_`; a missing one is zero.
    """
    all_figures = {
        "start_time_seconds": status.since_ms / 1000,
        "clients": status.connections,
        "sessions": status.sessions,
        "sessions_working": status.working,
        **figures,
    }
    lines = [f'tiller_build_info{{version="{status.version}"}} 1']
    for name, text in METRICS.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        value = all_figures.get(name, 0)
        lines += [
            f"# HELP tiller_{name} {text}",
            f"# TYPE tiller_{name} {kind}",
            f"tiller_{name} {value:.15g}",
        ]
    return "\n".join(lines) + "\n"


def answer(
    ask: DaemonCommand | None, status: DaemonState, figures: Callable[[], Mapping[str, float]]
) -> ControlReply:
    """Return what a question deserves; `stop` is not obeyed while something goes on.

    Args:
        ask: Question.
        status: State of the daemon.
        figures: Returns its other figures.
    """
    match ask:
        case "metrics":
            text = metrics(status, figures())
            return ControlReply(
                line=json.dumps({"tiller": "metrics", "text": text}).encode() + b"\n"
            )
        case "stop" if status.working:
            return ControlReply(line=_line("busy", status))
        case "stop" | "stopNow":
            return ControlReply(line=_line("stopping", status), leaves=True)
        case _:
            return ControlReply(line=_line("status", status))


def _line(word: str, status: DaemonState) -> bytes:
    return json.dumps({"tiller": word, **asdict(status)}).encode() + b"\n"
