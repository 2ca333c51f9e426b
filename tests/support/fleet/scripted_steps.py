"""Steps of a job for tests: a session of a few model calls and two posts, by the real stores and over loopback."""

import os
from typing import Any, Final

import anyio
import httpx
from anyio.to_thread import run_sync
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionNotFound
from agent_core.storage.port import SessionLog
from tests.support.session.entries import assistant, entry, header, user
from tiller_server.fleet.errors import FenceLost, JobDeferred
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.store import tables
from tiller_server.fleet.values import SlotLease
from tiller_server.fleet.worker.worker import WorkerParts

OFFICE: Final = "TILLER_TEST_OFFICE"
ANSWERS: Final = 3
POSTS: Final = 2
POST: Final = tables.POST


class ScriptedSteps:
    """The steps. They look before they post, as those of the fleet do."""

    def __init__(self, parts: WorkerParts, office: str) -> None:
        self.parts = parts
        self.client = httpx.AsyncClient(base_url=office, trust_env=False, timeout=30)

    async def checkout(self, job: int, lease: SlotLease) -> None:
        _ = await run_sync(self.parts.jobs.job, job)

    async def review(self, job: int, lease: SlotLease) -> None:
        there = await run_sync(self.parts.jobs.job, job)
        store = self.parts.sessions
        try:
            opened = await store.open(SessionId(there.session))
            log: SessionLog = opened.log
            last = len(opened.entries)
        except SessionNotFound:
            log, last = await store.create(header(there.session)), 0
        try:
            if not last:
                await log.append([entry("e1", user("Review it."))])
                last = 1
            for number in range(last, ANSWERS + 1):
                await self.ask(job, number)
                await log.append([entry(f"e{number + 1}", assistant("x"), parent=f"e{number}")])
        finally:
            await log.close()

    async def ask(self, job: int, number: int) -> None:
        body = {"name": f"{job}/{number}", "job": str(job)}
        answer = await self.client.post("/calls", json=body)
        if answer.status_code != 200:
            message = "the provider is down"
            raise JobDeferred(message, wait_ms=50)
        await anyio.sleep(0.02)

    async def prepare_posts(self, job: int, lease: SlotLease) -> None:
        _ = await run_sync(self.parts.jobs.advance, job, lease, "posting")
        for number in range(POSTS):
            await run_sync(self.intend, job, f"finding-{number}")

    def intend(self, job: int, fingerprint: str) -> None:
        there = self.parts.jobs.job(job)
        row: dict[str, Any] = {
            "job": job,
            "forge": there.forge,
            "repo": there.repo,
            "number": there.number,
            "target": "inline",
            "fingerprint": fingerprint,
            "state": "intended",
            "expected_head": there.head,
            "at_ms": 0,
        }
        try:
            with self.parts.database.begin() as connection:
                _ = connection.execute(insert(POST).values(**row))
        except IntegrityError:
            pass  # an earlier attempt stored it

    async def deliver(self, job: int, lease: SlotLease) -> None:
        for number in range(POSTS):
            fingerprint = f"finding-{number}"
            state = await run_sync(self.state, job, fingerprint)
            if state == "confirmed":
                continue
            pass_point("post.intended")
            await run_sync(self.set_state, job, fingerprint, "sent")
            marker = f"{job}/{fingerprint}"
            posts: list[str] = (await self.client.get("/posts")).json()
            if marker not in posts:
                if not self.parts.keeper.is_fresh():
                    message = "the lease may be over"
                    raise FenceLost(message)
                pass_point("post.sending")
                answer = await self.client.post("/posts", json={"name": marker})
                pass_point("post.sent")
                if answer.status_code != 200:
                    message = "the forge answered 502"
                    raise JobDeferred(message, wait_ms=50)
            await run_sync(self.set_state, job, fingerprint, "confirmed")
            pass_point("post.confirmed")

    def state(self, job: int, fingerprint: str) -> str:
        with self.parts.database.begin() as connection:
            query = select(POST.c.state).where(POST.c.job == job, POST.c.fingerprint == fingerprint)
            return connection.execute(query).scalar_one()

    def set_state(self, job: int, fingerprint: str, state: str) -> None:
        with self.parts.database.begin() as connection:
            _ = connection.execute(
                update(POST)
                .where(POST.c.job == job, POST.c.fingerprint == fingerprint)
                .values(state=state)
            )

    async def give_up(self, job: int, lease: SlotLease, reason: str) -> None:
        _ = await run_sync(lambda: self.parts.jobs.finish(job, lease, "failed", reason=reason))

    async def close(self, job: int, lease: SlotLease) -> None:
        _ = await run_sync(lambda: self.parts.jobs.finish(job, lease, "done"))


def make_steps(parts: WorkerParts) -> ScriptedSteps:
    """Make the steps of a worker."""
    return ScriptedSteps(parts, os.environ[OFFICE])  # noqa: TID251 - a worker of a test
