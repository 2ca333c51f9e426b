"""The page that follows a job: each event brings the change of the transcript, and the last one its end."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
from anyio.to_thread import run_sync
from typing_extensions import override

from tests.fleet.intake.conftest import TOKEN
from tests.fleet.test_jobs import wanted
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import assistant, chain, header, user
from tiller_server.fleet.intake.live_page import follow
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import Job

BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Pauses(FakeClock):
    """A clock whose pauses are counted; each does what the test has planned for it."""

    def __init__(self, *plan: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.plan = list(plan)

    @override
    async def sleep(self, seconds: float) -> None:
        if self.plan:
            _ = await self.plan.pop(0)()


def read(event: bytes) -> tuple[str, Any]:
    name, data = re.fullmatch(rb"event: (\w+)\ndata: (.*)\n\n", event).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return name.decode(), json.loads(data)


def applied(text: str, change: Any) -> str:
    """Apply a change as a browser does, whose strings are of UTF-16 units."""
    kept = text.encode("utf-16-le")[: change["keep"] * 2].decode("utf-16-le")
    return kept + change["text"]


async def test_the_text_grows_with_the_session_and_ends_with_the_job(
    database: FleetDatabase,
) -> None:
    jobs, slots = JobStore(database), SlotStore(database)
    job = jobs.submit(wanted()).job
    lease = slots.adopt(host="here", boot="1")
    entries = chain(user("Review 👩‍💻 it"), assistant("One line is wrong."))
    log = await FleetSessions(database, lease).create(header(job.session))
    clock = Pauses(
        lambda: run_sync(lambda: jobs.admit(job.id, lease)),
        lambda: log.append(entries[:1]),
        lambda: log.append(entries[1:]),
        log.close,
        lambda: run_sync(lambda: jobs.finish(job.id, lease, "done")),
    )
    text, states, events = "", list[Any](), 0
    async for event in follow(database, job.id, clock=clock):
        name, change = read(event)
        events += 1
        if name == "text":
            text = applied(text, change)
        else:
            states.append((change["state"], change["ended"]))
    assert states == [("queued", False), ("running", False), ("done", True)]
    assert events == 5
    assert "Review 👩‍💻 it" in text
    assert "One line is wrong." in text
    whole = await anext(follow(database, job.id, clock=Pauses()))
    assert read(whole)[1]["text"] == text


async def test_a_job_that_is_quiet_keeps_the_connection(database: FleetDatabase) -> None:
    job = JobStore(database).submit(wanted()).job
    events: AsyncIterator[bytes] = follow(database, job.id, clock=Pauses())
    assert read(await anext(events))[0] == "state"
    assert await anext(events) == b": quiet\n\n"


async def test_the_page_follows_the_events_of_its_job_and_runs_no_other_script(
    client: httpx.AsyncClient, database: FleetDatabase
) -> None:
    jobs = JobStore(database)
    job = jobs.submit(wanted(repo="team/<script>")).job
    assert isinstance(jobs.admit(job.id, SlotStore(database).adopt(host="h", boot="1")), Job)
    assert f'href="/jobs/{job.id}/live"' in (await client.get("/", headers=BEARER)).text
    page = await client.get(f"/jobs/{job.id}/live", headers=BEARER)
    assert f'data-events="/jobs/{job.id}/events"' in page.text
    assert page.text.count("<script>") == 1
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    _ = jobs.cancel(job.id, reason="x")
    stream = await client.get(f"/jobs/{job.id}/events", headers=BEARER)
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    assert '"ended":true' in stream.text
    for path in ("live", "events"):
        assert (await client.get(f"/jobs/99/{path}", headers=BEARER)).status_code == 404
