"""The page and the metrics of the fleet: text made on the server, without a script. Pure."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from typing import Final

from tiller_server.fleet.store.database import time_of
from tiller_server.fleet.store.statistics import FleetStatistics
from tiller_server.fleet.values import Job

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:75rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #8886;padding:.3rem .6rem;"
    "text-align:left;vertical-align:top}"
)
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
STATES: Final = ("queued", "running", "posting", "done", "failed", "superseded", "cancelled")


def render_page(
    numbers: FleetStatistics,
    *,
    working: Sequence[Job],
    queued: Sequence[Job],
    failed: Sequence[Job],
) -> str:
    """Return the page: numbers, slots, and the jobs that run, wait and failed."""
    facts = (
        f"{_counts(numbers)}. {numbers.living} of {len(numbers.slots)} slots have a worker. "
        f"{numbers.usd_today:.2f} USD today, {numbers.usd:.2f} USD in all."
    )
    parts = [
        f"<p>{facts}</p>",
        _jobs("Running", working),
        _jobs("Queued", queued),
        _jobs("Failed", failed),
        _table("Slots", ("Slot", "Worker", "Lease", "State"), _slots(numbers)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tiller fleet</title>'
        f"<style>{STYLE}</style></head><body><h1>Tiller fleet</h1>{''.join(parts)}</body></html>"
    )


def render_metrics(numbers: FleetStatistics) -> str:
    """Return the metrics in the text format of Prometheus."""
    return "".join(f"{line}\n" for line in _metrics(numbers))


def _metrics(numbers: FleetStatistics) -> Iterator[str]:
    yield "# TYPE tiller_fleet_jobs gauge"
    for state in STATES:
        yield f'tiller_fleet_jobs{{state="{state}"}} {numbers.jobs.get(state, 0)}'
    yield "# TYPE tiller_fleet_posts gauge"
    for state in ("intended", "sent", "confirmed", "dropped"):
        yield f'tiller_fleet_posts{{state="{state}"}} {numbers.posts.get(state, 0)}'
    yield "# TYPE tiller_fleet_queue_age_p95_seconds gauge"
    yield f"tiller_fleet_queue_age_p95_seconds {numbers.queue_age_p95_ms / 1000:.3f}"
    yield "# TYPE tiller_fleet_slots gauge"
    yield f'tiller_fleet_slots{{state="living"}} {numbers.living}'
    yield f'tiller_fleet_slots{{state="free"}} {len(numbers.slots) - numbers.living}'
    yield "# TYPE tiller_fleet_slot_adoptions_total counter"
    yield f"tiller_fleet_slot_adoptions_total {sum(slot.fence for slot in numbers.slots)}"
    yield "# TYPE tiller_fleet_refused_writes_total counter"
    yield f"tiller_fleet_refused_writes_total {numbers.refused_writes}"
    yield "# TYPE tiller_fleet_model_calls_total counter"
    yield f"tiller_fleet_model_calls_total {numbers.calls}"
    yield "# TYPE tiller_fleet_tokens_total counter"
    yield f"tiller_fleet_tokens_total {numbers.tokens}"
    yield "# TYPE tiller_fleet_cost_usd_total counter"
    yield f"tiller_fleet_cost_usd_total {numbers.usd:.6f}"


def _counts(numbers: FleetStatistics) -> str:
    counts = [f"{numbers.jobs[state]} {state}" for state in STATES if numbers.jobs.get(state)]
    return ", ".join(counts) or "No jobs"


def _slots(numbers: FleetStatistics) -> Iterator[tuple[str, ...]]:
    for slot in numbers.slots:
        is_living = slot.expires_ms > numbers.now_ms
        state = "drained" if slot.is_drained else "working" if is_living else "free"
        worker = f"{slot.host} {slot.pid}" if is_living else ""
        yield str(slot.id), worker, time_of(slot.expires_ms) if is_living else "", state


def _jobs(title: str, jobs: Sequence[Job]) -> str:
    rows = [
        (str(job.id), job.kind, str(job.change), job.head[:12], time_of(job.created_ms), job.reason)
        for job in jobs
    ]
    links = [f"/jobs/{job.id}/live" if job.started_ms else "" for job in jobs]
    heads = ("Job", "Kind", "Change", "Commit", "Created", "Reason")
    return _table(title, heads, rows, links=links)


def _table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    *,
    links: Sequence[str] = (),
) -> str:
    """Return a table; `links` are those of the first cells, empty for none."""
    lines: list[str] = []
    for number, row in enumerate(rows):
        first, *cells = (escape(cell) for cell in row)
        if number < len(links) and links[number]:
            first = f'<a href="{escape(links[number])}">{first}</a>'
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (first, *cells))}</tr>")
    if not lines:
        return f"<h2>{escape(title)}</h2><p>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{''.join(lines)}</table>"
