"""The fleet as processes: webhooks in, posts out, on one machine with SQLite."""

from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.fleet.demo import CHANGES, demo_fleet

pytestmark = [pytest.mark.timeout(300)]


async def test_three_pushes_are_reviewed_by_two_workers_and_posted_once(tmp_path: Path) -> None:
    async with demo_fleet(tmp_path) as fleet, httpx.AsyncClient(trust_env=False) as client:
        async with anyio.create_task_group() as group:
            for name in CHANGES:
                group.start_soon(fleet.push, client, name)
        jobs = await fleet.ended(client)
    assert [job["state"] for job in jobs] == ["done"] * len(CHANGES), jobs
    for api in fleet.forges.values():
        assert (len(api.threads), len(api.comments), len(api.checks)) == (1, 1, 1)
        assert api.problems == []
