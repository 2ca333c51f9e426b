"""A repository, a fake forge, a scripted model and the tables of a fleet: what the steps of a job need."""

import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from msgspec import to_builtins
from msgspec.structs import replace

from tests.support.fleet.webhooks import SECRET
from tests.support.harness.isolation import TillerDirs
from tests.support.harness.shared import ROOT
from tests.support.provider import LoopbackProvider
from tests.support.review.code_host import CodeHost, serving
from tests.support.review.gitea_api import TOKEN as GITEA_TOKEN, GiteaApi
from tests.support.review.github_api import TOKEN as GITHUB_TOKEN, GitHubApi
from tests.support.review.gitlab_api import TOKEN as GITLAB_TOKEN, File, GitLabApi
from tests.support.review.reviewing import Json, Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository
from tiller_server.fleet.forges import Forge, ForgeKind
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.posts import PostStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import ChangeName, Job, JobRequest, SlotLease
from tiller_server.fleet.worker.steps import JobSteps

CHANGE = ChangeName(forge="hub", repo="o/r", number=7)
TOKENS: Mapping[ForgeKind, str] = {
    "github": GITHUB_TOKEN,
    "gitlab": GITLAB_TOKEN,
    "gitea": GITEA_TOKEN,
}
STEPS = ("checkout", "review", "prepare_posts", "deliver", "close")


@dataclass(kw_only=True)
class FleetWork:
    """One change, and one worker for it."""

    database: FleetDatabase
    repository: Repository
    reviewing: Reviewing
    host: CodeHost
    api: Any
    """The API of the forge."""
    kind: ForgeKind
    folder: Path
    lease: SlotLease
    is_fresh: Callable[[], bool] = lambda: True
    options: Mapping[str, Any] = field(default_factory=dict)
    pushes: bool = False

    @property
    def jobs(self) -> JobStore:
        return JobStore(self.database)

    def forge(self) -> Forge:
        return Forge(
            name="hub",
            kind=self.kind,
            api_url=self.host.url + ("/api/v4" if self.kind == "gitlab" else ""),
            graphql_url=f"{self.host.url}/graphql",
            clone_url=f"file://{self.repository.root}",
            token=TOKENS[self.kind],
            webhook_secret=SECRET,
            push=self.pushes,
        )

    def steps(self) -> JobSteps:
        """Make the steps of a new worker process."""
        return JobSteps(
            self.database,
            forges={"hub": self.forge()},
            folder=self.folder,
            sessions=lambda lease: FleetSessions(self.database, lease),
            is_fresh=self.is_fresh,
            request=self.reviewing.request(**self.options),
        )

    def submit(self, **others: Any) -> Job:
        """Submit the review of the head, and admit it."""
        request = JobRequest(
            kind="review",
            change=CHANGE,
            head=self.repository.head(),
            base="main",
            cause="person",
        )
        job = self.jobs.submit(replace(request, **others)).job
        admitted = self.jobs.admit(job.id, self.lease)
        assert isinstance(admitted, Job)
        return admitted

    async def run(self, job: Job, *steps: str) -> None:
        """Run steps, all unless some are named."""
        runner = self.steps()
        for step in steps or STEPS:
            await getattr(runner, step)(job.id, self.lease)

    def submit_fix(self, prompt: str = "Set it back.", **others: Any) -> Job:
        """Submit a fix of the change, and admit it."""
        return self.submit(kind="fix", prompt=prompt, **others)

    def script_fix(self, text: str = "Set ONE back\n\nIt is 1 again.") -> None:
        """Have the model write the file and describe it."""
        self.reviewing.provider.script([writes("one.py", "ONE = 1\n"), says(text)])

    async def killed(self, job: Job, point: str) -> bool:
        """Run the steps in a process that is killed at a point; returns whether it came there. Its slot is adopted then."""
        env = dict(self.reviewing.request().env)
        done = await anyio.run_process(
            [
                sys.executable,
                "-m",
                "tests.support.review.fleet_child",
                f"sqlite:///{self.folder.parent}/fleet.db",
                str(self.folder),
                json.dumps(env),
                json.dumps(to_builtins(self.forge())),
                f"{job.id}/{self.lease.slot}/{self.lease.fence}",
            ],
            cwd=ROOT,
            env={**env, "TILLER_FLEET_FAULT": point},
            check=False,
        )
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr.decode()
            return False
        slots = SlotStore(self.database, lease_ms=600_000)
        slots.release(self.lease)
        self.lease = slots.adopt(host="here", boot="1")
        jobs = JobStore(self.database, limits=FleetLimits(max_attempts=1000))
        assert isinstance(jobs.admit(job.id, self.lease), Job)
        return True

    def script(self) -> None:
        """Have the model report the one wrong line."""
        self.reviewing.provider.script([reports(a_report("one.py", 1, "ONE = 2")), says("Wrong.")])

    def posts(self) -> list[tuple[str, str]]:
        """Return target and state of the posts of the change."""
        rows = PostStore(self.database).of_change(CHANGE).values()
        return sorted((row.target, row.state) for row in rows)


def writes(path: str, content: str) -> Json:
    """Make a turn that writes a file."""
    arguments = {"path": path, "content": content}
    return {"text": "", "tool_calls": [{"name": "write", "arguments": arguments}]}


def api_of(kind: ForgeKind, head: str) -> Any:
    """Return the API of a forge with a change of one line."""
    match kind:
        case "github":
            return GitHubApi(head=head, lines={"one.py": {1}})
        case "gitlab":
            diff = "@@ -1 +1 @@\n-ONE = 1\n+ONE = 2\n"
            file = File(new_path="one.py", old_path="one.py", diff=diff, shown={1: None})
            return GitLabApi(head=head, files=[file])
        case "gitea":
            return GiteaApi(head=head, lines={"one.py": {1}})


@asynccontextmanager
async def fleet_work(
    folder: Path, dirs: TillerDirs, *, kind: ForgeKind = "github"
) -> AsyncGenerator[FleetWork]:
    """Make a change of one file with one wrong line."""
    repository = Repository(folder / "origin")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    repository.commit("Begin", {"one.py": "ONE = 1\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    head = repository.commit("Change", {"one.py": "ONE = 2\n"})
    database = FleetDatabase(f"sqlite:///{folder}/fleet.db")
    database.migrate()
    slots = SlotStore(database, lease_ms=600_000)
    slots.make(2)
    api = api_of(kind, head)
    api.pulls.has_branch = lambda name: bool(repository.git("branch", "--list", name))
    with LoopbackProvider() as provider:
        reviewing = Reviewing(repository=repository, provider=provider, dirs=dirs)
        reviewing.configure()
        async with serving(api) as host:
            yield FleetWork(
                database=database,
                repository=repository,
                reviewing=reviewing,
                host=host,
                api=api,
                kind=kind,
                folder=folder / "work",
                lease=slots.adopt(host="here", boot="1"),
            )
    assert api.problems == []
    database.close()
