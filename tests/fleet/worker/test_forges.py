"""A delivery from its webhook to the posts, and a fix to its pull request, on each kind of forge."""

import json
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from tests.support.fleet.webhooks import payload, signed
from tests.support.harness.clock import FakeClock
from tests.support.harness.isolation import TillerDirs
from tests.support.review.code_host import Fault, Reply
from tests.support.review.fleet_work import FleetWork, fleet_work
from tiller_server.fleet.forges import ForgeKind
from tiller_server.fleet.intake.open_changes import poll
from tiller_server.fleet.intake.routes import FleetIntake, IntakeOptions
from tiller_server.fleet.posting.branch_outbox import branch_of
from tiller_server.fleet.values import Job
from tiller_server.review.posting.errors import PostingFailed

pytestmark = [pytest.mark.timeout(120)]
KINDS = ("github", "gitlab", "gitea")
kinds = pytest.mark.parametrize("kind", KINDS)


def on_forge(work: FleetWork) -> tuple[list[tuple[str, int | None, bool]], int, int]:
    """Return the places of comments, and the counts of summaries and checks."""
    api = work.api
    match work.kind:
        case "github":
            return api.by_line(), len(api.comments), len(api.checks)
        case "gitlab":
            summaries = [note for note in api.notes() if not note["position"]]
            return api.by_line(), len(summaries), 0
        case "gitea":
            return api.by_line(), len(api.comments), len(api.statuses)


def intake_of(work: FleetWork) -> FleetIntake:
    options = IntakeOptions(token_sha256=sha256(b"x").hexdigest(), debounce_ms=0)
    return FleetIntake(work.database, {"hub": work.forge()}, options)


@kinds
async def test_a_delivery_is_reviewed_and_posted_once(
    tmp_path: Path, tiller_dirs: TillerDirs, kind: ForgeKind
) -> None:
    async with fleet_work(tmp_path, tiller_dirs, kind=kind) as work:
        work.script()
        event = payload(kind, "push", head=work.api.head, repo="o/r", number=7)
        body = json.dumps(event).encode()
        transport = httpx.ASGITransport(app=intake_of(work).app())
        async with httpx.AsyncClient(transport=transport, base_url="http://fleet") as client:
            for delivery in ("1", "1", "2"):
                headers = signed(kind, body, delivery)
                _ = await client.post("/webhooks/hub", content=body, headers=headers)
        (job,) = work.jobs.jobs()
        assert isinstance(work.jobs.admit(job.id, work.lease), Job)
        await work.run(job)
        await_checks = 0 if kind == "gitlab" else 1
        assert on_forge(work) == ([("one.py", 1, False)], 1, await_checks)
        ended = work.jobs.job(job.id)
        assert (ended.state, ended.cause) == ("done", "webhook:1")
        states = dict(work.posts())
        assert states == {
            "check": "dropped" if kind == "gitlab" else "confirmed",
            "inline": "confirmed",
            "summary": "confirmed",
        }


@kinds
async def test_polling_submits_the_open_change_once_and_no_draft(
    tmp_path: Path, tiller_dirs: TillerDirs, kind: ForgeKind
) -> None:
    async with fleet_work(tmp_path, tiller_dirs, kind=kind) as work:
        intake = intake_of(work)

        async def polled() -> int:
            return await poll(
                work.forge(),
                "o/r",
                lambda forge, event: intake.submit_event(forge, event, cause="poll"),
                clock=FakeClock(),
            )

        assert [await polled(), await polled()] == [1, 1]
        (job,) = work.jobs.jobs()
        assert (str(job.change), job.head, job.base) == ("hub:o/r#7", work.api.head, "main")
        first = work.api.head
        work.api.head = "c" * 40
        assert await polled() == 1
        assert [one.state for one in work.jobs.jobs()] == ["queued", "superseded"]
        assert work.jobs.jobs()[1].head == first
        work.api.pulls.is_draft = True
        assert await polled() == 0
        reply = Reply(status=404, body={"message": "gone"})
        work.host.faults.append(Fault(method="GET", path=".", reply=reply))
        with pytest.raises(PostingFailed, match="list changes of o/r"):
            await polled()


@kinds
async def test_a_fix_opens_one_request_and_a_later_one_updates_it(
    tmp_path: Path, tiller_dirs: TillerDirs, kind: ForgeKind
) -> None:
    async with fleet_work(tmp_path, tiller_dirs, kind=kind) as work:
        work.pushes = True
        work.script_fix("First")
        job = work.submit_fix()
        await work.run(job)
        branch = branch_of(job)
        assert work.api.pulls.texts() == [(branch, "feature", "First")]
        work.api.head = work.repository.commit("Again", {"two.py": "TWO = 2\n"})
        work.script_fix("Second")
        again = work.submit_fix()
        await work.run(again)
        assert work.api.pulls.texts() == [(branch, "feature", "Second")]
        assert work.repository.git("show", f"{branch}:one.py") == "ONE = 1"
