"""Values of the fleet: changes, jobs and the slots of workers. Times are milliseconds since 1970 on the clock of the database."""

from hashlib import sha256
from typing import Final, Literal

from typing_extensions import override

from agent_core.kernel.values import Value

JobKind = Literal["review", "fix", "maintain"]
JobState = Literal["queued", "running", "posting", "done", "failed", "superseded", "cancelled"]
SCHEDULE: Final = "schedule:"
"""Begins the cause of a job of a schedule; its name follows."""
ChangeState = Literal["open", "closed", "merged"]
OPEN_STATES: Final[tuple[JobState, ...]] = ("queued", "running", "posting")
"""States of a job that has not ended."""
ACTIVE_STATES: Final[tuple[JobState, ...]] = ("running", "posting")
"""States of a job that a worker has."""


class ChangeName(Value, frozen=True, kw_only=True):
    """Name of a pull or merge request; number 0 names the repository's default branch."""

    forge: str
    """Name of the forge in the settings of the fleet."""
    repo: str
    """Path of the repository on the forge, `owner/name`."""
    number: int

    @property
    def org(self) -> str:
        """The owner: the first part of the path."""
        return self.repo.split("/", 1)[0]

    @override
    def __str__(self) -> str:
        """Return `forge:owner/name#number`."""
        return f"{self.forge}:{self.repo}#{self.number}"


class JobRequest(Value, frozen=True, kw_only=True):
    """A job that is wanted."""

    kind: JobKind
    change: ChangeName
    head: str
    """Commit to work on; empty: the tip of `base` when the job begins."""
    base: str
    """Branch or commit that the change goes into."""
    cause: str
    """Origin: `webhook:<delivery>`, `poll`, `api`, `person`, `schedule:<name>`."""
    provider: str = ""
    """Provider of the model; counts for the limits. Empty: none is counted."""
    prompt: str = ""
    """Prompt of kind `fix` and `maintain`."""
    priority: int = 100
    """Lower is earlier."""
    budget_usd: float | None = None
    delay_ms: int = 0
    """Time until it may start: a later push in it supersedes the job unbegun."""
    deadline_ms: int | None = None
    """Time after which it is not begun any more; None: never."""
    occurrence: str = ""
    """Name of the occurrence of a schedule, as `2026-11-29T03:00`; empty: of none."""

    @property
    def key(self) -> str:
        """The name by which a job is submitted once: kind, change and head, with the prompt or the occurrence if there is one."""
        change = self.change
        key = f"{self.kind}/{change.forge}/{change.repo}/{change.number}"
        if self.occurrence:
            return f"{key}/{self.cause}/{self.occurrence}"
        return "/".join(
            [key, self.head, *([] if self.kind == "review" else [prompt_digest(self.prompt)])]
        )


def prompt_digest(prompt: str) -> str:
    """Return a short name of a prompt."""
    return sha256(prompt.encode(errors="surrogatepass")).hexdigest()[:12]


def session_name(job: int, number: int) -> str:
    """Return the id of the session of a round of a job."""
    return f"fleet-{job}-{number}"


class Job(Value, frozen=True, kw_only=True):
    """A job as it is stored."""

    id: int
    key: str
    kind: JobKind
    forge: str
    repo: str
    number: int
    head: str
    base: str
    state: JobState
    reason: str = ""
    """Reason of the state, in one sentence; empty: none is needed."""
    cause: str = ""
    provider: str = ""
    prompt: str = ""
    priority: int = 100
    budget_usd: float | None = None
    attempts: int = 0
    """Times that a worker has begun it."""
    round: int = 0
    """Times that it was queued again by a person."""
    slot: int | None = None
    fence: int = 0
    """Fence of the slot when the worker took it."""
    due_ms: int = 0
    """Time from which it may start."""
    deadline_ms: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    result: str | None = None
    """SHA-256 of the artefact with the result."""

    @property
    def change(self) -> ChangeName:
        """The change it is for."""
        return ChangeName(forge=self.forge, repo=self.repo, number=self.number)

    @property
    def session(self) -> str:
        """Id of its session: that of its round, so that a repeated job begins anew."""
        return session_name(self.id, self.round)


class Submission(Value, frozen=True, kw_only=True):
    """Result of submitting a job."""

    job: Job
    is_new: bool
    """False: a job of this key was there."""
    superseded: tuple[int, ...] = ()
    """Jobs for earlier heads of the change that ended by this."""


class WorkerSlot(Value, frozen=True, kw_only=True):
    """A place for one worker process."""

    id: int
    host: str = ""
    boot: str = ""
    """Id of the host's boot, so that a process id means one process."""
    pid: int = 0
    fence: int = 0
    expires_ms: int = 0
    is_drained: bool = False
    """Whether its worker takes no more jobs."""


class SlotLease(Value, frozen=True, kw_only=True):
    """A slot as one process has it. Every write of a worker names it, and fails when the fence has moved."""

    slot: int
    fence: int


class Deferral(Value, frozen=True, kw_only=True):
    """A job that may not start yet; its attempts do not count."""

    reason: str
    """In one sentence."""
    wait_ms: int
    """Time after which it is worth to ask again."""
