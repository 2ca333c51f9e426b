"""The page that follows the session of a job: its transcript as text, continued by server-sent events while it grows.

The panel of `tiller web` needs the frames of a daemon that has the session open; a worker has none.
"""

import base64
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256
from html import escape
from typing import Final

from anyio.to_thread import run_sync

from agent_core.kernel import Clock, JsonObject, SessionId
from agent_core.kernel.errors import SessionNotFound
from agent_core.kernel.json import encode
from agent_core.transcript.export.markdown_document import markdown
from tiller_server.fleet.intake.page import STYLE
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.values import OPEN_STATES, Job

LOOK_S: Final = 1.0
QUIET_LOOKS: Final = 15
"""Looks without news after which a comment keeps the connection open."""
LIVE_STYLE: Final = f"{STYLE}pre{{white-space:pre-wrap;overflow-wrap:anywhere}}"
SCRIPT: Final = """
const source = new EventSource(document.body.dataset.events);
const transcript = document.querySelector("pre"), state = document.querySelector("output");
let text = "";
source.addEventListener("open", () => { text = ""; });
source.addEventListener("text", (event) => {
  const change = JSON.parse(event.data);
  const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  text = text.slice(0, change.keep) + change.text;
  transcript.textContent = text;
  if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
});
source.addEventListener("state", (event) => {
  const change = JSON.parse(event.data);
  state.textContent = change.reason ? `${change.state}: ${change.reason}` : change.state;
  if (change.ended) source.close();
});
"""


def _hash_of(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


LIVE_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; "
    f"style-src 'sha256-{_hash_of(LIVE_STYLE)}'; script-src 'sha256-{_hash_of(SCRIPT)}'"
)


def render_live_page(job: Job) -> str:
    """Return the page of a job, which shows what the events bring as text."""
    title = escape(f"Job {job.id}: {job.kind} of {job.change}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<style>{LIVE_STYLE}</style></head><body data-events="/jobs/{job.id}/events">'
        f'<h1>{title}</h1><p><a href="/">All jobs</a> · <output>{escape(job.state)}</output></p>'
        f"<pre></pre><script>{SCRIPT}</script></body></html>"
    )


async def follow(database: FleetDatabase, job: int, *, clock: Clock) -> AsyncIterator[bytes]:
    """Yield server-sent events until the job has ended: `state` when it changes, and `text` with what replaces the end.

    `keep` counts the units of UTF-16 that stay, as a browser counts the length of a text.
    """
    jobs, sessions = JobStore(database), FleetSessions(database)
    text, seq, state, looks = "", 0, "", 0
    while True:
        there = await run_sync(jobs.job, job)
        session = SessionId(there.session)
        last = await sessions.last_seq(session)
        if last != seq:
            fresh = await _transcript(sessions, there)
            yield _event("text", _change(text, fresh))
            text, seq, looks = fresh, last, 0
        shown = f"{there.state} {there.reason}"
        if shown != state:
            ended = there.state not in OPEN_STATES
            yield _event("state", {"state": there.state, "reason": there.reason, "ended": ended})
            state, looks = shown, 0
            if ended:
                return
        looks += 1
        if looks % QUIET_LOOKS == 0:
            yield b": quiet\n\n"
        await clock.sleep(LOOK_S)


def _change(text: str, fresh: str) -> JsonObject:
    pairs = zip(text, fresh, strict=False)
    count = next(
        (number for number, (old, new) in enumerate(pairs) if old != new),
        min(len(text), len(fresh)),
    )
    keep = len(fresh[:count].encode("utf-16-le", "surrogatepass")) // 2
    return {"keep": keep, "text": fresh[count:]}


async def _transcript(sessions: FleetSessions, job: Job) -> str:
    try:
        stored = await sessions.read(SessionId(job.session))
    except SessionNotFound:
        return ""  # removed since
    return await run_sync(
        partial(markdown, stored.header, stored.entries, title=f"{job.kind} of {job.change}")
    )


def _event(name: str, data: JsonObject) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + encode(data) + b"\n\n"
