"""The session of a job for the panel: it grows with the entries of the worker, and nothing can be written."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.routing import Route
from typing_extensions import override

from tests.fleet.intake.conftest import TOKEN
from tests.fleet.test_jobs import wanted
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import assistant, chain, header, user
from tiller_server.fleet.intake.panel_routes import PanelRoutes
from tiller_server.fleet.intake.session_panel import SessionPanel
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import Job, SlotLease
from tiller_server.lsp.wire.catalogue import ModelListResult
from tiller_server.lsp.wire.session import Snapshot
from tiller_server.lsp.wire.sessions import (
    SessionExportResult,
    SessionListResult,
    SessionReadResult,
)
from tiller_server.lsp.wire.subscription import SnapshotFrame

BEARER: Mapping[str, str] = {"Authorization": f"Bearer {TOKEN}"}
ENTRIES = chain(user("Review 👩‍💻 it"), assistant("One line is wrong."))


class Pauses(FakeClock):
    """A clock whose pauses do what the test has planned for them; without a plan they end the stream."""

    def __init__(self, *plan: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.plan = list(plan)

    @override
    async def sleep(self, seconds: float) -> None:
        _ = await self.plan.pop(0)()


async def nothing() -> None:
    """Let a second pass."""


def read(event: bytes) -> tuple[str, dict[str, Any]]:
    """Return the id and the snapshot of an event, which fits the wire."""
    name, number, data, *_ = event.decode().split("\n")
    assert name == "event: snapshot"
    sent = json.loads(data.removeprefix("data: "))
    frame = SnapshotFrame.model_validate(sent["frame"])
    assert sent["session"] == frame.session
    assert number == f"id: {frame.epoch}.{frame.seq}"
    return number.removeprefix("id: "), sent["frame"]["snapshot"]


def begun(database: FleetDatabase) -> tuple[Job, SlotLease]:
    jobs = JobStore(database)
    job = jobs.submit(wanted()).job
    lease = SlotStore(database).adopt(host="here", boot="1")
    assert isinstance(jobs.admit(job.id, lease), Job)
    return job, lease


@pytest.fixture
async def session(database: FleetDatabase) -> str:
    """The session of a job that runs, with two entries."""
    job, lease = begun(database)
    log = await FleetSessions(database, lease).create(header(job.session))
    await log.append(ENTRIES)
    await log.close()
    return job.session


async def asked(client: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    body = {"method": method, "params": params}
    answer = await client.post("/v1/rpc", json=body, headers=BEARER)
    assert answer.status_code == 200
    assert answer.headers["tiller-role"] == "reader"
    return answer.json()


async def test_a_snapshot_comes_with_each_entry_and_with_the_end_of_the_job(
    database: FleetDatabase,
) -> None:
    jobs, slots = JobStore(database), SlotStore(database)
    job = jobs.submit(wanted()).job
    lease = slots.adopt(host="here", boot="1")
    log = await FleetSessions(database, lease).create(header(job.session))
    clock = Pauses(
        lambda: run_sync(lambda: jobs.admit(job.id, lease)),
        lambda: log.append(ENTRIES[:1]),
        nothing,
        lambda: log.append(ENTRIES[1:]),
        lambda: run_sync(lambda: jobs.finish(job.id, lease, "done")),
    )
    events = SessionPanel(database, clock=clock).follow(job.session, seq=-1)
    seen = [read(await anext(events)) for _ in range(5)]
    assert [(one["state"], one["history"]["cursor"]) for _, one in seen] == [
        ("idle", None),
        ("running", None),
        ("running", "end"),
        ("running", "end"),
        ("idle", "end"),
    ]
    assert len({number for number, _ in seen}) == 5
    assert seen[-1][1]["title"].endswith("done")
    assert seen[-1][1]["config"]["model"] == "lab/m"
    await log.close()


async def test_a_job_that_is_quiet_keeps_the_connection(
    database: FleetDatabase, session: str
) -> None:
    clock = Pauses(*[nothing] * 20)
    events: AsyncIterator[bytes] = SessionPanel(database, clock=clock).follow(session, seq=-1)
    _ = read(await anext(events))
    assert await anext(events) == b": quiet\n\n"


async def test_the_panel_opens_the_job_and_reads_what_was_said(
    client: httpx.AsyncClient, session: str
) -> None:
    for which in (session, "latest"):
        opened = (await asked(client, "agent/session/open", session=which))["result"]
        assert Snapshot.model_validate(opened).session == session
    page = (await asked(client, "agent/session/read", session=session, before="end"))["result"]
    _ = SessionReadResult.model_validate(page)
    assert [one["content"][0]["text"] for one in page["items"]] == [
        "Review 👩‍💻 it",
        "One line is wrong.",
    ]
    listed = (await asked(client, "agent/session/list", scope="all"))["result"]
    (info,) = SessionListResult.model_validate(listed).sessions
    assert (info.session, info.title) == (session, "review of forge:team/app#1")
    for query, count in (("App#1 review", 1), ("nowhere", 0)):
        found = (await asked(client, "agent/session/list", query=query))["result"]
        assert len(found["sessions"]) == count
    exported = await asked(client, "agent/session/export", session=session, format="markdown")
    assert "One line is wrong." in SessionExportResult.model_validate(exported["result"]).content
    models = (await asked(client, "agent/model/list", scope="all"))["result"]
    assert ModelListResult.model_validate(models).models == []


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("agent/prompt", {"session": "fleet-1-0", "content": []}, -32601),
        ("agent/run/cancel", {"session": "fleet-1-0"}, -32601),
        ("agent/session/open", {"session": "fleet-9-0"}, -32803),
        ("agent/session/open", {"session": "../etc"}, -32803),
        ("agent/session/open", {"session": 7}, -32602),
        ("agent/session/read", {"session": "fleet-1-0", "before": "nowhere"}, -32602),
        ("agent/session/export", {"session": "fleet-1-0", "format": "html"}, -32602),
        ("agent/session/export", {"session": "fleet-9-0", "format": "markdown"}, -32803),
    ],
)
async def test_what_is_not_served_is_one_sentence(
    client: httpx.AsyncClient, session: str, method: str, params: dict[str, Any], code: int
) -> None:
    assert session == "fleet-1-0"
    error = (await asked(client, method, **params))["error"]
    assert (error["code"], "\n" in error["message"]) == (code, False)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"method": 7}', b"[" * 5000])
async def test_a_body_that_cannot_be_read_is_refused(
    client: httpx.AsyncClient, body: bytes
) -> None:
    answer = await client.post("/v1/rpc", content=body, headers=BEARER)
    assert answer.json()["error"]["code"] == -32600


async def test_the_list_leads_to_the_panel(client: httpx.AsyncClient, session: str) -> None:
    assert 'href="/jobs/1/live"' in (await client.get("/", headers=BEARER)).text
    answer = await client.get("/jobs/1/live", headers=BEARER)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/panel#session={session}")
    assert (await client.get("/jobs/99/live", headers=BEARER)).status_code == 404
    nowhere = await client.get("/v1/events?sessions=fleet-99-0", headers=BEARER)
    assert nowhere.status_code == 204


async def test_the_page_and_its_files_are_those_of_tiller_web(
    database: FleetDatabase, tmp_path: Path
) -> None:
    _ = (tmp_path / "index.html").write_text('<script nonce="{{nonce}}"></script>')
    _ = (tmp_path / "app.js").write_text("let one = 1;\n" * 200)
    routes = PanelRoutes(SessionPanel(database, clock=Pauses()), folder=tmp_path)
    app = Starlette(
        routes=[Route("/panel", routes.page), Route("/assets/{name}", routes.asset)],
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://f") as client:
        page = await client.get("/panel")
        script = await client.get("/assets/app.js")
        missing = await client.get("/assets/none.js")
    assert "{{nonce}}" not in page.text
    assert "script-src 'nonce-" in page.headers["content-security-policy"]
    assert script.headers["content-encoding"] == "gzip"
    assert missing.status_code == 404


async def test_a_reader_that_comes_back_is_sent_only_what_it_has_not(
    database: FleetDatabase, session: str
) -> None:
    panel = SessionPanel(database, clock=Pauses())
    number, _ = read(await anext(panel.follow(session, seq=-1)))
    seq = int(number.rpartition(".")[2])
    again = SessionPanel(database, clock=Pauses(*[nothing] * 20)).follow(session, seq=seq)
    assert await anext(again) == b": quiet\n\n"
