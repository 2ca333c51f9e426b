"""Settings of a fleet, in one file that all its processes read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value, threadsafe
from tiller_server.fleet.forges import ForgeSettings, forge_problem
from tiller_server.fleet.limits import FleetLimits
from tiller_server.fleet.schedules import ScheduleSettings, schedule_problem

SCHEMES: Final = ("sqlite:///", "postgresql://")
MAX_BYTES: Final = 1 << 20
HEX: Final = frozenset("0123456789abcdef")
SHA256_CHARS: Final = 64
MAX_PORT: Final = 65_535
STEPS: Final = "tiller_server.fleet.worker.steps:make_steps"


class IntakeSettings(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `tiller fleet serve`."""

    listen: str = "127.0.0.1"
    """Address; put a proxy with TLS before it."""
    port: int = 7434
    token_sha256: str = ""
    """SHA-256 of the token of `/jobs`, `/metrics` and the page, in hexadecimal digits; empty: none has access."""
    debounce_s: float = 90.0
    """Time that a push waits, so that a later one in it supersedes the job unbegun."""
    poll_s: float = 300.0
    """Pause between two polls."""
    provider: str = ""
    """Provider that the limits count the jobs for."""


class FleetConfig(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a fleet."""

    database: str = ""
    """URL, `sqlite:////path/to/file` or `postgresql://user@host:port/name`; empty: a file in Tiller's data folder."""
    slots: int = 2
    """Worker processes at once; more are spares."""
    sessions: int = 8
    """Jobs at once of one worker."""
    limits: FleetLimits = msgspec.field(default_factory=FleetLimits)
    lease_s: float = 45.0
    """Time after which a worker that was not heard of is taken for lost."""
    renew_s: float = 10.0
    """Pause between two renewals of a lease."""
    poll_s: float = 1.0
    """Pause between two looks for work."""
    drain_s: float = 60.0
    """Time that jobs at work have when the worker is ended."""
    outage_s: float = 300.0
    """Time that a worker waits for a database that is gone."""
    retry_wait_s: float = 30.0
    """Pause after the first failure of a job."""
    forges: Mapping[str, ForgeSettings] = msgspec.field(default_factory=dict[str, ForgeSettings])
    """By the name that jobs have them under."""
    intake: IntakeSettings = msgspec.field(default_factory=IntakeSettings)
    schedules: Mapping[str, ScheduleSettings] = msgspec.field(
        default_factory=dict[str, ScheduleSettings]
    )
    """By the name that is part of the branch of their pull requests."""
    model: str | None = None
    """Model of the reviews; None: that of the user's settings."""
    job_usd: float | None = None
    """Budget of a job that names none."""
    keep_days: int = 7
    """Days for which the intake keeps transcripts and results of jobs that have ended."""
    folder: str = ""
    """Folder of the checkouts; empty: one in Tiller's data folder."""
    steps: str = STEPS
    """`module:function` that makes the steps of jobs out of a `WorkerParts`."""


def read_config(file: Path | None, *, data: Path) -> FleetConfig:
    """Read the settings of a fleet; without a file each has its default.

    Args:
        file: JSON.
        data: Tiller's data folder, for the default database.

    Raises:
        UsageError: The file cannot be read, or a value in it cannot be used.
    """
    config = FleetConfig() if file is None else _decoded(file)
    if not config.folder:
        config = msgspec.structs.replace(config, folder=str(data / "fleet" / "checkouts"))
    if not config.database:
        folder = data / "fleet"
        config = msgspec.structs.replace(config, database=f"sqlite:///{folder}/fleet.db")
    problem = _problem(config)
    if problem is not None:
        message = problem if file is None else f"{file}: {problem}"
        raise UsageError(message)
    return config


def _decoded(file: Path) -> FleetConfig:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"the settings of the fleet cannot be read: {file}: {error.strerror}"
        raise UsageError(message) from error
    if len(content) > MAX_BYTES:
        message = f"{file} has more than {MAX_BYTES} bytes; name the settings of a fleet"
        raise UsageError(message)
    try:
        return msgspec.json.decode(content, type=threadsafe(FleetConfig))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{file} holds no settings of a fleet: {error}"
        raise UsageError(message) from error


def _problem(config: FleetConfig) -> str | None:
    """Return the first value that cannot be used, in one sentence."""
    limits = config.limits
    positive = {
        name: getattr(config, name)
        for name in ("slots", "sessions", "lease_s", "renew_s", "poll_s", "outage_s")
    }
    positive["limits.max_attempts"] = limits.max_attempts
    not_negative = {name: getattr(config, name) for name in ("drain_s", "retry_wait_s")}
    for name in ("per_repo", "per_org", "per_forge", "per_provider"):
        not_negative[f"limits.{name}"] = getattr(limits, name)
    if not config.database.startswith(SCHEMES):
        scheme = config.database.partition(":")[0]
        return f"database begins with {scheme!r}; it is a URL of sqlite:/// or postgresql://"
    for name, value in positive.items():
        if not value > 0:
            return f"{name} is {value}; it is more than 0"
    for name, value in not_negative.items():
        if not value >= 0:
            return f"{name} is {value}; it is 0 or more"
    if config.renew_s * 3 > config.lease_s:
        return f"renew_s is {config.renew_s}; it is at most a third of lease_s, {config.lease_s}"
    return _intake_problem(config)


def _intake_problem(config: FleetConfig) -> str | None:
    for name, forge in config.forges.items():
        if (problem := forge_problem(forge)) is not None:
            return f"forges.{name}: {problem}"
    for name, schedule in config.schedules.items():
        if (problem := schedule_problem(name, schedule, config.forges)) is not None:
            return f"schedules.{name}: {problem}"
    token = config.intake.token_sha256
    if token and not (len(token) == SHA256_CHARS and set(token.lower()) <= HEX):
        return "intake.token_sha256 is no SHA-256 in hexadecimal digits; make one with sha256sum"
    if not 0 <= config.intake.port <= MAX_PORT:
        return f"intake.port is {config.intake.port}; it is 0 to {MAX_PORT}"
    return None
