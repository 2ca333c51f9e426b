"""An evaluation: all tasks of a folder, checked both ways and then tried, several at a time."""

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import anyio
from anyio import CapacityLimiter, to_thread

from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program
from agent_core.workspace.sandbox import Prober
from tiller_server import VERSION
from tiller_server.evaluation.attempt import AttemptOrder, run_attempt
from tiller_server.evaluation.errors import EvaluationImpossible, SuiteRefused, TaskInvalid
from tiller_server.evaluation.place import make_place
from tiller_server.evaluation.result import Attempt, Evaluation, SkippedTask
from tiller_server.evaluation.scripted.model_server import serve_scripts
from tiller_server.evaluation.tasks.repositories import GitRunner, TaskRepository
from tiller_server.evaluation.tasks.task import LoadedTask
from tiller_server.evaluation.tasks.validation import SOLVED, prepare_task

SCRIPTED: Final = "scripted"
"""Name of the scripted model."""
EMBEDDED: Final = "embedded/repair"
EMBEDDED_KIND: Final = "repair"

PREPARED: Final = "prepared"
"""Folder with repositories, hidden tests and solutions: hidden from agents, as the tasks themselves are."""
ATTEMPTS: Final = "attempts"


class SuiteOrder(Value, frozen=True, kw_only=True):
    """Order to evaluate tasks."""

    suite: Path
    tasks: tuple[LoadedTask, ...]
    model: str
    k: int
    jobs: int
    env: Mapping[str, str]
    results: Path
    keep: bool
    uncontained: bool
    clock: Clock


class SuiteWatcher(Protocol):
    """Observer of the progress of an evaluation."""

    def checked(self, task: LoadedTask) -> None:
        """Report that a task was checked both ways."""
        ...

    def refused(self, problem: TaskInvalid) -> None:
        """Report that a task cannot be used."""
        ...

    def skipped(self, task: SkippedTask) -> None:
        """Report that a task is not tried."""
        ...

    def tried(self, attempt: Attempt) -> None:
        """Report an attempt."""
        ...


class Suite:
    """The tasks of one evaluation, with the folder in which they are worked on."""

    def __init__(
        self,
        order: SuiteOrder,
        watcher: SuiteWatcher,
        *,
        git: GitRunner,
        folder: Path,
        containment: str,
    ) -> None:
        self._order = order
        self._watcher = watcher
        self._folder = folder
        self._containment = containment
        self._git = git
        self._limiter = CapacityLimiter(order.jobs)
        self._repositories: dict[str, TaskRepository] = {}
        self._skipped: list[SkippedTask] = []
        self._attempts: list[Attempt] = []

    async def check(self) -> None:
        """Check every task both ways; those that need what is missing are skipped.

        Raises:
            SuiteRefused: One cannot be used. All were checked.
        """
        refused: list[TaskInvalid] = []

        async def check(loaded: LoadedTask) -> None:
            async with self._limiter:
                try:
                    await self._check(loaded)
                except TaskInvalid as error:
                    refused.append(error)
                    self._watcher.refused(error)

        async with anyio.create_task_group() as group:
            for loaded in self._order.tasks:
                if (reason := self._skip_reason(loaded)) is None:
                    group.start_soon(check, loaded)
                    continue
                task = loaded.task
                skipped = SkippedTask(task=task.instance_id, kind=task.kind, reason=reason)
                self._skipped.append(skipped)
                self._watcher.skipped(skipped)
        if refused:
            count = "1 task was" if len(refused) == 1 else f"{len(refused)} tasks were"
            message = f"{count} refused, so nothing was tried"
            raise SuiteRefused(message)

    async def run(self) -> None:
        """Try every task k times; the attempts of one task follow one another."""
        with serve_scripts() if self._order.model == SCRIPTED else nullcontext() as scripted:
            order = AttemptOrder(
                git=self._git,
                env=self._order.env,
                model=self._order.model,
                scripted=scripted,
                hidden=self._hidden,
                contained=not self._order.uncontained,
                results=self._order.results,
                keep=self._order.keep,
                clock=self._order.clock,
            )
            async with anyio.create_task_group() as group:
                for loaded in self._order.tasks:
                    if loaded.task.instance_id in self._repositories:
                        group.start_soon(self._try, order, loaded)

    def result(self, *, started: datetime, duration_s: float) -> Evaluation:
        """Return what was tried."""
        return Evaluation(
            version=VERSION,
            model=self._order.model,
            suite=str(self._order.suite),
            started_at=started.isoformat(timespec="seconds"),
            k=self._order.k,
            containment=self._containment,
            attempts=tuple(sorted(self._attempts, key=lambda one: (one.task, one.number))),
            skipped=tuple(sorted(self._skipped, key=lambda one: one.task)),
            duration_s=round(duration_s, 3),
        )

    @property
    def _hidden(self) -> tuple[Path, ...]:
        return (self._order.suite, self._order.results, self._folder / PREPARED)

    def _skip_reason(self, loaded: LoadedTask) -> str | None:
        task = loaded.task
        if self._order.model == EMBEDDED and task.kind != EMBEDDED_KIND:
            return f"{EMBEDDED} only repairs failing Python tests"
        path = self._order.env.get("PATH", os.defpath)
        for program in task.requires:
            if find_outside_program(program, env_path=path, roots=()) is None:
                return f"{program} is not installed"
        return None

    async def _check(self, loaded: LoadedTask) -> None:
        folder = self._folder / PREPARED / loaded.task.instance_id
        place = await to_thread.run_sync(
            lambda: make_place(
                folder / "checking",
                env=self._order.env,
                hidden=self._hidden,
                contained=not self._order.uncontained,
                test_s=loaded.task.limits.test_s,
                providers={},
            )
        )
        repository = await prepare_task(self._git, loaded, folder=folder, place=place)
        self._repositories[loaded.task.instance_id] = repository
        self._watcher.checked(loaded)

    async def _try(self, order: AttemptOrder, loaded: LoadedTask) -> None:
        name = loaded.task.instance_id
        for number in range(1, self._order.k + 1):
            async with self._limiter:
                attempt = await run_attempt(
                    order,
                    loaded,
                    self._repositories[name],
                    solved=self._folder / PREPARED / name / SOLVED,
                    number=number,
                    folder=self._folder / ATTEMPTS / f"{name}-{number}",
                )
            self._attempts.append(attempt)
            self._watcher.tried(attempt)


@asynccontextmanager
async def opened_suite(order: SuiteOrder, watcher: SuiteWatcher) -> AsyncGenerator[Suite]:
    """Return the tasks of an evaluation with a temporary folder, which is removed with the context.

    Raises:
        EvaluationImpossible: Commands cannot be contained here, or git is missing.
    """
    containing = await to_thread.run_sync(Prober().containing)
    if containing.level == "none" and not order.uncontained:
        message = f"commands cannot be contained here ({containing.why_not_full}); --uncontained runs them all the same"
        raise EvaluationImpossible(message)
    git = await to_thread.run_sync(GitRunner, order.env)
    folder = await to_thread.run_sync(lambda: Path(tempfile.mkdtemp("", "tiller-eval-")).resolve())
    try:
        containment = "none" if order.uncontained else f"{containing.level}, {containing.how}"
        yield Suite(order, watcher, git=git, folder=folder, containment=containment)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def evaluate(order: SuiteOrder, watcher: SuiteWatcher) -> Evaluation:
    """Check all tasks both ways, and try each of them k times.

    Raises:
        SuiteRefused: A task passes without its solution or fails with it; then none is tried.
        EvaluationImpossible: Commands cannot be contained here, or git is missing.
    """
    began_s = order.clock.monotonic_s()
    started = datetime.fromtimestamp(order.clock.now_ms() / 1000, UTC)
    async with opened_suite(order, watcher) as suite:
        await suite.check()
        await suite.run()
        return suite.result(started=started, duration_s=order.clock.monotonic_s() - began_s)
