"""The intake over HTTP: webhooks of three forges, jobs with a token, and every refusal."""

import json
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from agent_core.kernel import SystemClock
from tests.fleet.intake.conftest import TOKEN
from tests.support.fleet.webhooks import payload, signed
from tests.support.session.entries import assistant, chain, header, user
from tiller_server.fleet.errors import FenceLost, FleetError
from tiller_server.fleet.intake.routes import DEBOUNCE_MS, FleetIntake
from tiller_server.fleet.intake.server import listen, serve_intake
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import SlotLease

pytestmark = [pytest.mark.timeout(60)]
FORGES = ("github", "gitlab", "gitea")
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PRIVATE = (
    ("GET", "/"),
    ("GET", "/metrics"),
    ("GET", "/jobs"),
    ("POST", "/jobs"),
    ("GET", "/jobs/1"),
    ("GET", "/jobs/1/transcript"),
    ("GET", "/jobs/1/live"),
    ("GET", "/panel"),
    ("GET", "/assets/{name}"),
    ("POST", "/v1/rpc"),
    ("GET", "/v1/events"),
)


async def deliver(
    client: httpx.AsyncClient, forge: str, action: str, delivery: str, **others: Any
) -> httpx.Response:
    body = json.dumps(payload(forge, action, **others)).encode()
    return await client.post(
        f"/webhooks/{forge}", content=body, headers=signed(forge, body, delivery)
    )


@pytest.mark.parametrize("forge", FORGES)
async def test_pushes_are_debounced_and_supersede_and_the_end_of_a_change_ends_its_job(
    client: httpx.AsyncClient, database: FleetDatabase, forge: str
) -> None:
    first = await deliver(client, forge, "open", "1")
    assert (first.status_code, first.json()["status"]) == (202, "queued")
    again = await deliver(client, forge, "push", "2", head="b")
    assert again.json()["superseded"] == [first.json()["job"]]
    jobs = JobStore(database)
    job = jobs.job(again.json()["job"])
    assert job.due_ms - job.created_ms == DEBOUNCE_MS
    assert (job.cause, job.provider, job.base) == ("webhook:2", "lab", "main")
    closed = await deliver(client, forge, "merge", "3", head="b")
    assert closed.json() == {"status": "merged", "ended": [job.id]}
    assert jobs.job(job.id).reason == "the change was merged"


@pytest.mark.parametrize("forge", FORGES)
async def test_a_delivery_that_is_repeated_has_no_effect(
    client: httpx.AsyncClient, forge: str
) -> None:
    _ = await deliver(client, forge, "close", "1")
    _ = await deliver(client, forge, "open", "2")
    repeated = await deliver(client, forge, "close", "1")
    assert (repeated.status_code, repeated.json()) == (200, {"status": "repeated"})
    counts = await client.get("/jobs", headers=BEARER)
    assert [job["state"] for job in counts.json()["jobs"]] == ["queued"]


@pytest.mark.parametrize("forge", [*FORGES, "unknown"])
async def test_a_forged_signature_is_refused(
    client: httpx.AsyncClient, database: FleetDatabase, forge: str
) -> None:
    kind = "github" if forge == "unknown" else forge
    body = json.dumps(payload(kind, "open")).encode()
    for headers in (
        signed(kind, body, "1", secret="wrong"),
        signed(kind, b"other", "1", secret="hook-secre"),
        {},
    ):
        answer = await client.post(f"/webhooks/{forge}", content=body, headers=headers)
        assert answer.status_code == 401
        assert "signature" in answer.json()["error"]
    assert JobStore(database).jobs() == ()


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"not json", 400, "no JSON"),
        (b"[1]", 202, None),
        (json.dumps(payload("github", "open", head="--x")).encode(), 400, "names no repository"),
        (json.dumps(payload("github", "open", repo="other/app")).encode(), 404, "not one of"),
        (b'{"zen": "x"}', 202, None),
        (b"{" + b" " * 30_000 + b"}", 413, "larger than"),
    ],
)
async def test_a_signed_webhook_that_cannot_be_used_has_one_clear_answer(
    client: httpx.AsyncClient, body: bytes, status: int, error: str | None
) -> None:
    headers = signed("github", body, "1")
    answer = await client.post("/webhooks/github", content=body, headers=headers)
    assert answer.status_code == status
    assert error is None or error in answer.json()["error"]


async def test_a_webhook_without_a_delivery_id_is_refused(client: httpx.AsyncClient) -> None:
    body = json.dumps(payload("github", "open")).encode()
    headers = signed("github", body, "")
    answer = await client.post("/webhooks/github", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "the webhook has no delivery id")


@pytest.mark.parametrize(("method", "path"), PRIVATE)
async def test_a_private_route_without_the_token_is_refused(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    for value in ("", "Bearer wrong", "Basic %%%", "Basic Og==", "Digest x", f"bearer{TOKEN}"):
        answer = await client.request(method, path, headers={"Authorization": value})
        assert answer.status_code == 401, value


async def test_each_route_is_named_in_a_test(intake: FleetIntake) -> None:
    public = {("POST", "/webhooks/{forge}"), ("GET", "/healthz")}
    private = {(method, path.replace("/1", "/{id:int}")) for method, path in PRIVATE}
    there = {
        (method, getattr(route, "path", ""))
        for route in intake.app().routes
        for method in getattr(route, "methods", ())
        if method != "HEAD"
    }
    assert there == public | private


async def test_a_job_is_submitted_listed_and_shown(client: httpx.AsyncClient) -> None:
    body = {"forge": "github", "repo": "team/app", "number": 4, "head": "c" * 40, "base": "main"}
    made = await client.post("/jobs", json=body, headers=BEARER)
    assert made.status_code == 202
    again = await client.post("/jobs", json=body, headers=BEARER)
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    shown = await client.get(f"/jobs/{made.json()['id']}", headers=BEARER)
    assert shown.json()["state"] == "queued"
    listed = await client.get("/jobs?repo=team/app", headers=BEARER)
    assert len(listed.json()["jobs"]) == 1
    other = await client.get(f"/jobs?before={made.json()['id']}", headers=BEARER)
    assert other.json()["jobs"] == []


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"repo": "other/app"}, 404, "not one of this fleet"),
        ({"forge": "none"}, 404, "not one of this fleet"),
        ({"head": "main"}, 400, "whole hash"),
        ({"base": "--upload-pack=x"}, 400, "whole hash"),
        ({"kind": "fix"}, 400, "needs a prompt"),
        ({"kind": "deploy"}, 400, "kind"),
        ({"more": 1}, 400, "more"),
        ({"number": -1}, 400, "number"),
    ],
)
async def test_a_job_that_cannot_be_run_is_refused(
    client: httpx.AsyncClient, change: Any, status: int, error: str
) -> None:
    body = {"forge": "github", "repo": "team/app", "head": "c" * 40, "base": "main", **change}
    answer = await client.post("/jobs", json=body, headers=BEARER)
    assert answer.status_code == status
    assert error in answer.json()["error"]


async def test_a_body_over_the_limit_and_an_unknown_job_are_refused(
    client: httpx.AsyncClient,
) -> None:
    large = await client.post("/jobs", content=b"x" * 30_000, headers=BEARER)
    assert large.status_code == 413
    assert (await client.get("/jobs/99", headers=BEARER)).status_code == 404
    assert (await client.get("/jobs?before=x", headers=BEARER)).status_code == 400


async def test_the_page_and_the_metrics_show_the_jobs_and_no_markup_of_others(
    client: httpx.AsyncClient, database: FleetDatabase
) -> None:
    _ = await deliver(client, "github", "open", "1", repo="team/<b>x")
    jobs = JobStore(database)
    _ = jobs.cancel(jobs.jobs()[0].id, reason="<script>", state="failed")
    page = await client.get("/", auth=("any", TOKEN))
    assert page.status_code == 200
    assert "team/&lt;b&gt;x" in page.text
    assert "<script>" not in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    metrics = (await client.get("/metrics", headers=BEARER)).text
    assert 'tiller_fleet_jobs{state="failed"} 1' in metrics
    assert 'tiller_fleet_slots{state="free"} 2' in metrics
    assert "tiller_fleet_refused_writes_total 0" in metrics
    with pytest.raises(FenceLost):
        _ = jobs.admit(jobs.jobs()[0].id, SlotLease(slot=1, fence=7))
    metrics = (await client.get("/metrics", headers=BEARER)).text
    assert "tiller_fleet_refused_writes_total 1" in metrics
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_the_transcript_of_a_job_is_read_while_it_runs(
    client: httpx.AsyncClient, database: FleetDatabase
) -> None:
    _ = await deliver(client, "github", "open", "1")
    jobs, slots = JobStore(database), SlotStore(database)
    job = jobs.jobs()[0]
    early = await client.get(f"/jobs/{job.id}/transcript", headers=BEARER)
    assert early.status_code == 404
    assert "no model was asked" in early.json()["error"]
    lease = slots.adopt(host="here", boot="1")
    log = await FleetSessions(database, lease).create(header(job.session))
    await log.append(chain(user("Review a change <script>"), assistant("One line is wrong.")))
    shown = await client.get(f"/jobs/{job.id}/transcript", headers=BEARER)
    assert shown.headers["content-type"].startswith("text/plain")
    assert "One line is wrong." in shown.text
    await log.close()


async def test_the_routes_are_served_at_a_socket(intake: FleetIntake) -> None:
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(FleetError, match="cannot be used"):
        _ = listen("127.0.0.1", listener.getsockname()[1])
    with listener:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(serve_intake, intake, listener, clock=SystemClock()))
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                assert (await client.get("/healthz")).json() == {"status": "ok"}
                assert (await client.get("/jobs")).status_code == 401
            group.cancel_scope.cancel()
