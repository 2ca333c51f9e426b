"""A fleet on one machine: the intake, two workers, three changes on fake forges, and a scripted model. `make fleet-demo`."""

import hmac
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx
from anyio.abc import Process

from tests.support.harness.isolation import TillerDirs
from tests.support.harness.shared import ROOT
from tests.support.provider import LoopbackProvider, write_config
from tests.support.review.code_host import serving
from tests.support.review.github_api import TOKEN, GitHubApi
from tests.support.review.reviewing import a_report, reports, says
from tests.support.workspace.repositories import Repository

SECRET, API_TOKEN = "demo-hook", "demo-token"
LISTENS = "the intake listens on "
WAIT_S = 240.0
CHANGES = ("alpha", "beta", "gamma")
SCRIPT = (
    reports(a_report("one.py", 1, "ONE = 2")) | {"when": "Review a change", "repeat": -1},
    says("One line is wrong.") | {"when": "Noted at", "repeat": -1},
)


@dataclass(kw_only=True)
class DemoFleet:
    """The running processes, and the changes they work on."""

    url: str
    heads: Mapping[str, str]
    forges: Mapping[str, GitHubApi]
    workers: list[Process] = field(default_factory=list)

    async def push(self, client: httpx.AsyncClient, name: str) -> None:
        """Deliver the webhook of a push."""
        pull = {"head": {"sha": self.heads[name]}, "base": {"ref": "main"}}
        event: dict[str, Any] = {"action": "opened", "number": 7, "pull_request": pull}
        body = json.dumps({**event, "repository": {"full_name": "o/r"}}).encode()
        digest = hmac.new(SECRET.encode(), body, sha256).hexdigest()
        headers = {
            "X-Hub-Signature-256": f"sha256={digest}",
            "X-GitHub-Event": "pull_request",
            "X-GitHub-Delivery": f"{name}-1",
        }
        answer = await client.post(f"{self.url}/webhooks/{name}", content=body, headers=headers)
        assert answer.status_code == 202, answer.text

    async def jobs(self, client: httpx.AsyncClient) -> list[dict[str, Any]]:
        """Return the jobs."""
        headers = {"Authorization": f"Bearer {API_TOKEN}"}
        return (await client.get(f"{self.url}/jobs", headers=headers)).json()["jobs"]

    async def ended(self, client: httpx.AsyncClient) -> list[dict[str, Any]]:
        """Return the jobs when all have ended."""
        with anyio.fail_after(WAIT_S):
            while True:
                jobs = await self.jobs(client)
                if all(job["state"] not in {"queued", "running", "posting"} for job in jobs):
                    return jobs
                await anyio.sleep(0.2)


def _repository(folder: Path, name: str) -> tuple[Repository, str]:
    made = Repository(folder / name / "o" / "r.git")
    made.git("config", "uploadpack.allowAnySHA1InWant", "true")
    made.commit("Begin", {"one.py": "ONE = 1\n"})
    made.git("checkout", "--quiet", "-b", "feature")
    return made, made.commit(f"Change {name}", {"one.py": "ONE = 2\n"})


async def start_command(verb: str, config: Path, env: Mapping[str, str], *, log: Any) -> Process:
    """Start a command of the fleet."""
    command = [sys.executable, "-P", "-m", "tiller_server.cli.entry", "fleet", verb]
    return await anyio.open_process(
        [*command, "--config", str(config)],
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=log,
    )


def _settings(folder: Path, forges: Mapping[str, Any]) -> str:
    intake = {
        "port": 0,
        "debounce_s": 0,
        "token_sha256": sha256(API_TOKEN.encode()).hexdigest(),
    }
    settings = {
        "database": f"sqlite:///{folder}/fleet.db",
        "folder": str(folder / "checkouts"),
        "poll_s": 0.2,
        "forges": forges,
        "intake": intake,
    }
    return json.dumps(settings)


async def stop_command(process: Process) -> None:
    """End a command as a supervisor does."""
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(20, shield=True):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()


@asynccontextmanager
async def demo_fleet(
    folder: Path,
    *,
    workers: int = 2,
    changes: Sequence[str] = CHANGES,
    script: Sequence[dict[str, Any]] = SCRIPT,
) -> AsyncGenerator[DemoFleet]:
    """Start everything, and stop it at the end.

    Args:
        folder: Folder for all files.
        workers: Number of processes.
        changes: Names of changes, each on a forge of its own.
        script: Answers of the model.
    """
    dirs = TillerDirs.below(folder / "t")
    dirs.make()
    async with AsyncExitStack() as stack:
        provider = stack.enter_context(LoopbackProvider(script))
        write_config(dirs.config, provider)
        heads: dict[str, str] = {}
        forges: dict[str, GitHubApi] = {}
        settings: dict[str, Any] = {}
        for name in changes:
            _, heads[name] = _repository(folder, name)
            forges[name] = GitHubApi(head=heads[name], lines={"one.py": {1}})
            host = await stack.enter_async_context(serving(forges[name]))
            settings[name] = {
                "kind": "github",
                "api_url": host.url,
                "clone_url": f"file://{folder}/{name}/{{repo}}.git",
                "token_env": "DEMO_TOKEN",
                "webhook_secret_env": "DEMO_SECRET",
            }
        config = folder / "fleet.json"
        await anyio.Path(config).write_text(_settings(folder, settings), encoding="utf-8")
        env = {
            "PATH": "/usr/bin:/bin",
            **dirs.variables(),
            "DEMO_TOKEN": TOKEN,
            "DEMO_SECRET": SECRET,
        }
        serve = await start_command("serve", config, env, log=subprocess.PIPE)
        stack.push_async_callback(stop_command, serve)
        fleet = DemoFleet(url=await address_of(serve), heads=heads, forges=forges)
        for number in range(workers):
            log = stack.enter_context((folder / f"worker-{number}.log").open("wb"))
            worker = await start_command("worker", config, env, log=log)
            stack.push_async_callback(stop_command, worker)
            fleet.workers.append(worker)
        yield fleet


async def address_of(serve: Process) -> str:
    """Return where the intake listens, as its log says."""
    assert serve.stderr is not None
    text = ""
    async for chunk in serve.stderr:
        text += chunk.decode(errors="replace")
        _, found, rest = text.partition(LISTENS)
        if found and "\n" in rest:
            return rest.split()[0]
    raise AssertionError(text)


async def main() -> None:
    """Run three reviews, and print what is on the forges."""
    with tempfile.TemporaryDirectory(prefix="tiller-fleet-") as folder:
        async with demo_fleet(Path(folder)) as fleet, httpx.AsyncClient(trust_env=False) as client:
            for name in CHANGES:
                await fleet.push(client, name)
                print(f"webhook of {name}: accepted")
            for job in await fleet.ended(client):
                print(f"job {job['id']} of {job['forge']}: {job['state']} {job['reason']}")
            for name, api in fleet.forges.items():
                print(f"\n== {name}: {len(api.threads)} comment, {len(api.checks)} check")
                for thread in api.threads:
                    print(f"{thread.comment.path}:{thread.comment.line} {thread.comment.body}")
                print(api.comments[0].body if api.comments else "no summary")


if __name__ == "__main__":
    anyio.run(main)
