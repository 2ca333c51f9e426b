"""The steps of a review, from the commit to the posts on a forge: each post once, whatever happens on the way."""

import anyio
import pytest

from agent_core.memory.access import open_memory
from agent_core.memory.values import MemoryDraft
from agent_core.resources.paths import app_paths
from tests.support.harness.clock import FakeClock
from tests.support.review.code_host import Fault, Reply
from tests.support.review.fleet_work import CHANGE, STEPS, FleetWork
from tests.support.review.github_api import PULL, Comment, Thread
from tiller_server.fleet.errors import FenceLost, JobDeferred, JobEnded
from tiller_server.fleet.store.posts import PostStore
from tiller_server.fleet.store.results import ResultStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import Job
from tiller_server.review.findings.rejection_memory import KIND
from tiller_server.review.findings.result import Review
from tiller_server.review.outputs.json_report import read_json

pytestmark = [pytest.mark.timeout(300)]
CONFIRMED = [("check", "confirmed"), ("inline", "confirmed"), ("summary", "confirmed")]


def on_forge(work: FleetWork) -> tuple[int, int, int]:
    """Count comments on lines, summaries and checks."""
    return len(work.api.threads), len(work.api.comments), len(work.api.checks)


def made_by(work: FleetWork, job: Job) -> Review:
    """Return the review that a job has stored."""
    content = ResultStore(work.database).result(job, "review")
    assert content is not None
    return read_json(content, name="result")


async def test_a_review_is_posted_once_and_leaves_no_checkout(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job)
    assert work.jobs.job(job.id).state == "done"
    assert on_forge(work) == (1, 1, 1)
    assert work.posts() == CONFIRMED
    check = work.api.checks[0]
    assert (check["external_id"], check["conclusion"]) == (str(job.id), "neutral")
    assert list((work.folder / "jobs").iterdir()) == []


async def test_each_step_may_be_repeated(work: FleetWork) -> None:
    job = work.submit()
    for step in STEPS[:-1]:
        await work.run(job, step)
        await work.run(job, step)
    await work.run(job, "close")
    assert on_forge(work) == (1, 1, 1)
    assert len(work.reviewing.provider.requests) == 2


async def test_a_delivery_killed_at_any_request_posts_nothing_twice(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job, *STEPS[:3])
    number = 0
    while True:
        number += 1
        work.host.forget()
        with anyio.CancelScope() as scope:
            work.host.events = {number: scope.cancel}
            await work.run(job, "deliver")
        if not scope.cancelled_caught:
            break
    assert number > 3
    assert on_forge(work) == (1, 1, 1)
    assert work.posts() == CONFIRMED


async def test_a_forge_that_fails_after_accepting_is_looked_at_again(work: FleetWork) -> None:
    work.options = {"clock": FakeClock()}
    job = work.submit()
    await work.run(job, *STEPS[:3])
    lost = Reply(status=502, body={"message": "Bad gateway"})
    work.host.faults = [
        Fault(method="POST", path="/reviews$", reply=lost, is_done=True),
        Fault(method="POST", path="/issues/7/comments$", reply=lost, is_done=True),
        Fault(method="POST", path="/check-runs$", reply=lost, is_done=True),
    ]
    with pytest.raises(JobDeferred):  # the check is not tried again at once
        await work.run(job, "deliver")
    await work.run(job, "deliver")
    assert on_forge(work) == (1, 1, 1)
    assert work.posts() == CONFIRMED


async def test_a_limit_of_the_forge_defers_the_job(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job, *STEPS[:3])
    body = {"message": "You have exceeded a secondary rate limit"}
    limited = Reply(status=403, body=body, headers={"Retry-After": "90"})
    work.host.faults = [Fault(method="POST", path="/reviews$", reply=limited)]
    with pytest.raises(JobDeferred) as deferred:
        await work.run(job, "deliver")
    assert deferred.value.wait_ms == 90_000
    await work.run(job, "deliver", "close")
    assert on_forge(work) == (1, 1, 1)


async def test_a_push_during_the_delivery_ends_it_before_the_next_post(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job, *STEPS[:3])
    work.host.forget()

    def push() -> None:
        work.api.head = "c" * 40

    work.host.events = {2: push}  # after the look, at the question for the head
    with pytest.raises(JobEnded, match="the change moved on to cccc"):
        await work.run(job, "deliver")
    assert on_forge(work) == (0, 0, 0)
    assert work.jobs.job(job.id).state == "superseded"
    assert {state for _, state in work.posts()} <= {"dropped", "sent"}


async def test_a_worker_that_may_have_lost_its_slot_sends_nothing(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job, *STEPS[:3])
    work.is_fresh = lambda: False
    with pytest.raises(FenceLost):
        await work.run(job, "deliver")
    assert on_forge(work) == (0, 0, 0)
    SlotStore(work.database).release(work.lease)
    work.is_fresh = lambda: True
    with pytest.raises(FenceLost):
        await work.run(job, "deliver")
    assert on_forge(work) == (0, 0, 0)


async def test_the_edits_of_people_stay_and_the_younger_twin_goes(work: FleetWork) -> None:
    first = work.submit()
    await work.run(first)
    mark = work.api.comments[0].body
    work.api.comments[0].body = f"{mark}\n\nA person wrote this."
    work.api.threads.append(
        Thread(comment=Comment(number=work.api.last + 50, body=work.api.threads[0].comment.body))
    )
    work.repository.commit("Again", {"two.py": "TWO = 2\n"})
    work.api.head = work.repository.head()
    work.script()
    second = work.submit()
    await work.run(second)
    assert work.api.comments[0].body.endswith("A person wrote this.")
    assert on_forge(work) == (1, 1, 2)
    rows = PostStore(work.database).of_change(CHANGE).values()
    reasons = [row.reason for row in rows if row.target == "summary"]
    assert reasons == ["a person edited it, so it stays as it is"]


async def test_a_commit_that_is_gone_supersedes_and_a_missing_repository_fails(
    work: FleetWork,
) -> None:
    gone = work.submit(head="d" * 40)
    with pytest.raises(JobEnded, match="no longer has the commit"):
        await work.run(gone, "checkout")
    assert work.jobs.job(gone.id).state == "superseded"
    lost = work.submit(head="e" * 40)
    work.repository.root.rename(work.repository.root.with_name("elsewhere"))
    with pytest.raises(JobEnded):
        await work.run(lost, "checkout")
    ended = work.jobs.job(lost.id)
    assert ended.state == "failed"
    assert "cannot be fetched" in ended.reason


async def test_a_provider_that_is_away_defers_the_review_and_it_continues(work: FleetWork) -> None:
    work.options = {"clock": FakeClock()}
    job = work.submit()
    await work.run(job, "checkout")
    work.reviewing.provider.script([{"status": 503, "body": "away", "repeat": -1}])
    with pytest.raises(JobDeferred):
        await work.run(job, "review")
    work.script()
    await work.run(job, "review", "prepare_posts", "deliver", "close")
    assert on_forge(work) == (1, 1, 1)


async def test_a_token_without_rights_fails_the_job_with_the_reason(work: FleetWork) -> None:
    job = work.submit()
    await work.run(job, *STEPS[:3])
    refusal = Reply(status=403, body={"message": "Resource not accessible by integration"})
    work.host.faults = [Fault(method="POST", path=f"{PULL}/reviews$", reply=refusal)]
    with pytest.raises(JobEnded):
        await work.run(job, "deliver")
    ended = work.jobs.job(job.id)
    assert ended.state == "failed"
    assert "pull-requests: write" in ended.reason
    assert "failed" in work.api.checks[0]["output"]["title"]


async def test_a_review_that_can_never_be_made_fails_at_once_and_the_check_says_so(
    work: FleetWork,
) -> None:
    work.repository.git("checkout", "--quiet", "--orphan", "other")
    work.api.head = work.repository.commit("Alone", {"one.py": "ONE = 3\n"})
    job = work.submit()
    with pytest.raises(JobEnded):
        await work.run(job)
    ended = work.jobs.job(job.id)
    assert ended.state == "failed"
    assert "no commit in common" in ended.reason
    output = work.api.checks[0]["output"]
    assert (output["title"], output["summary"]) == ("The review failed", ended.reason)


async def test_a_job_that_is_not_begun_any_more_says_so_on_the_check(work: FleetWork) -> None:
    job = work.submit()
    reason = "it was begun 3 times and no worker survived it"
    await work.steps().give_up(job.id, work.lease, reason)
    ended = work.jobs.job(job.id)
    assert (ended.state, ended.reason) == ("failed", reason)
    output = work.api.checks[0]["output"]
    assert (output["title"], output["summary"]) == ("The review failed", reason)
    with pytest.raises(JobEnded):
        await work.steps().give_up(job.id, work.lease, reason)
    assert len(work.api.checks) == 1


async def test_a_finding_that_a_person_rejected_in_a_clone_is_not_posted(work: FleetWork) -> None:
    work.repository.git("remote", "add", "origin", work.forge().clone_url)
    first = work.submit()
    await work.run(first, "checkout", "review")
    (finding,) = made_by(work, first).findings
    request = work.reviewing.request()
    memory = await open_memory(
        app_paths(request.env).memory,
        work.repository.root,
        env=request.env,
        clock=request.clock,
        redactor=request.redactor,
    )
    await memory.switch(on=True)
    fields = {"fingerprint": finding.fingerprint, "rule": finding.category, "file": finding.path}
    draft = MemoryDraft(text="It is meant so.", kind=KIND, expires="2999-01-01", fields=fields)
    await memory.store.add(memory.project.scope, [draft])
    work.api.head = work.repository.commit("Again", {"two.py": "TWO = 2\n"})
    work.script()
    second = work.submit()
    await work.run(second)
    made = made_by(work, second)
    assert (made.findings, made.suppressed) == ((), 1)
    assert len(work.api.threads) == 0
