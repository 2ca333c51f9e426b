"""The intake as a process: it serves, polls and runs schedules until it is ended."""

import json
import socket
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.fleet.demo import address_of, start_command, stop_command
from tests.support.harness.isolation import TillerDirs
from tests.support.review.code_host import serving
from tests.support.review.fleet_work import TOKENS, api_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
TOKEN = "fleet-token"
HEAD = "a" * 40


async def configured(folder: Path, api_url: str, **intake: Any) -> Path:
    """Write the settings of a fleet with one forge that is polled, and a schedule of each minute."""
    settings = {
        "database": f"sqlite:///{folder}/fleet.db",
        "forges": {
            "lab": {
                "kind": "gitlab",
                "api_url": f"{api_url}/api/v4",
                "token_env": "LAB_TOKEN",
                "polled": ["o/r"],
            }
        },
        "schedules": {
            "tidy": {"cron": "* * * * *", "forge": "lab", "repos": ["o/r"], "prompt": "Tidy."}
        },
        "intake": {"port": 0, "token_sha256": sha256(TOKEN.encode()).hexdigest(), **intake},
    }
    file = folder / "fleet.json"
    await anyio.Path(file).write_text(json.dumps(settings))
    return file


async def test_the_intake_polls_and_runs_schedules_until_it_is_ended(
    tmp_path: Path, tiller_dirs: TillerDirs
) -> None:
    async with serving(api_of("gitlab", HEAD)) as forge:
        config = await configured(tmp_path, forge.url)
        env = {**tiller_dirs.variables(), "PATH": "/usr/bin:/bin", "LAB_TOKEN": TOKENS["gitlab"]}
        process = await start_command("serve", config, env, log=subprocess.PIPE)
        try:
            url = await address_of(process)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(base_url=url, trust_env=False, headers=headers) as client:
                assert (await client.get("/healthz")).json() == {"status": "ok"}
                jobs: list[Any] = []
                with anyio.fail_after(60):
                    while len(jobs) < 2:
                        jobs = (await client.get("/jobs")).json()["jobs"]
                        await anyio.sleep(0.1)
            causes = {job["kind"]: (job["cause"], job["head"]) for job in jobs}
            assert causes == {"review": ("poll", HEAD), "maintain": ("schedule:tidy", "")}
        finally:
            await stop_command(process)
        assert process.returncode is not None
        assert process.returncode <= 0, "a signal ends it, not an error"


async def test_a_port_that_is_taken_is_one_sentence(
    tmp_path: Path, tiller_dirs: TillerDirs
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = await configured(tmp_path, "https://lab.example", port=port)
        env = {**tiller_dirs.variables(), "PATH": "/usr/bin:/bin"}
        process = await start_command("serve", config, env, log=subprocess.PIPE)
        assert process.stderr is not None
        error = b"".join([chunk async for chunk in process.stderr]).decode()
        assert await process.wait() == 1
    assert f"tiller fleet: intake.port {port} of 127.0.0.1 cannot be used" in error
    assert "Traceback" not in error
