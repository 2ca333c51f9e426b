"""A worker that is killed with SIGKILL at marked points: the next one continues, and nothing is asked or posted twice."""

from collections.abc import Sequence

import pytest
from anyio.to_thread import run_sync

from agent_core.kernel import SessionId
from agent_core.messages import AssistantMessage
from agent_core.transcript.entries import MessageEntry
from tests.support.review.fleet_work import FleetWork
from tests.support.review.reviewing import Json, a_report, reports, says
from tiller_server.fleet.store.sessions import FleetSessions

pytestmark = [pytest.mark.timeout(600)]
TURNS: Sequence[Json] = (reports(a_report("one.py", 1, "ONE = 2")), says("Wrong."))
POINTS = (
    *("append.before:1", "append.after:2", "append.before:3", "append.after:2"),
    "post.intended",
    *("post.sending", "post.sent") * 3,
    "post.confirmed",
)
"""Passages are counted from the start of each process."""


async def _answers(work: FleetWork, session: str) -> int:
    listed = [one.session for one in await FleetSessions(work.database).list()]
    if session not in listed:
        return 0
    stored = await FleetSessions(work.database).read(SessionId(session))
    return sum(
        isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        for entry in stored.entries
    )


async def test_each_killed_worker_is_followed_by_one_that_continues(work: FleetWork) -> None:
    job = work.submit()
    kills = 0
    for point in POINTS:
        script = list(TURNS[await _answers(work, job.session) :])
        await run_sync(work.reviewing.provider.script, script)
        kills += await work.killed(job, point)
        if work.jobs.job(job.id).state == "done":
            break
    script = list(TURNS[await _answers(work, job.session) :])
    await run_sync(work.reviewing.provider.script, script)
    if work.jobs.job(job.id).state != "done":
        await work.run(job)
    assert kills >= len(POINTS) - 2
    assert work.jobs.job(job.id).state == "done"
    assert (len(work.api.threads), len(work.api.comments), len(work.api.checks)) == (1, 1, 1)
    assert [state for _, state in work.posts()] == ["confirmed"] * 3
    assert len(work.reviewing.provider.requests) <= len(TURNS) + kills
