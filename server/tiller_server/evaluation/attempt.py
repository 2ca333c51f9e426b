"""One attempt: an agent works on a copy of the repository, and what it left is judged."""

import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from tiller_server.evaluation.agent_process import AgentRun, RunOrder, run_agent, run_review
from tiller_server.evaluation.grades import beyond_limits, opened_tests, write_graded
from tiller_server.evaluation.place import AgentPlace, make_place
from tiller_server.evaluation.result import Attempt, Verdict
from tiller_server.evaluation.review_score import ReviewScore, score_of
from tiller_server.evaluation.scripted.model_server import MODEL, PROVIDER, ScriptedModel
from tiller_server.evaluation.scripted.script import placed, script_of
from tiller_server.evaluation.tasks.repositories import (
    GitRunner,
    TaskRepository,
    WorkingState,
    working_state,
)
from tiller_server.evaluation.tasks.task import LoadedTask
from tiller_server.evaluation.tasks.temptation import PlacedTemptation, place_temptation
from tiller_server.review.errors import ReviewFileInvalid
from tiller_server.review.findings.result import Review
from tiller_server.review.outputs.json_report import read_json

SESSION: Final = "session.jsonl"
PATCH: Final = "changes.patch"
OUTPUT: Final = "output.txt"


class AttemptOrder(Value, frozen=True, kw_only=True):
    """Values that all attempts of an evaluation share."""

    git: GitRunner
    env: Mapping[str, str]
    model: str
    scripted: ScriptedModel | None
    """The scripted model, if it is the one that is evaluated."""
    hidden: tuple[Path, ...]
    contained: bool
    results: Path
    """Where sessions and changes of attempts that did not pass are kept."""
    keep: bool
    """Whether those of the others are kept too."""
    clock: Clock


class _Judgement(Value, frozen=True, kw_only=True):
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    patch: str = ""
    output: str = ""
    review: ReviewScore | None = None


async def run_attempt(
    order: AttemptOrder,
    loaded: LoadedTask,
    repository: TaskRepository,
    *,
    solved: Path,
    number: int,
    folder: Path,
) -> Attempt:
    """Have an agent work on a task, and judge what it left.

    Args:
        order: The evaluation.
        loaded: Task to work on.
        repository: Its repository; it stays as it is.
        solved: Files of the reference solution.
        number: Of the attempt, from 1.
        folder: New folder for its files, which is removed at its end.
    """
    try:
        await to_thread.run_sync(_forget, order.results / f"{loaded.task.instance_id}-{number}")
        async with _placed_agent(order, loaded, repository, solved, folder) as (run, temptation):
            began_s = order.clock.monotonic_s()
            agent = await _run(run, loaded, repository)
            duration_s = order.clock.monotonic_s() - began_s
            judgement = await _judge(
                order, loaded, repository, agent, temptation=temptation, place=run.place
            )
            attempt = Attempt(
                task=loaded.task.instance_id,
                kind=loaded.task.kind,
                number=number,
                verdict=judgement.verdict,
                reasons=judgement.reasons,
                turns=agent.use.turns,
                calls=agent.use.calls,
                tokens=agent.use.tokens,
                cost_usd=agent.use.cost_usd,
                duration_s=round(duration_s, 3),
                review=judgement.review,
            )
            if judgement.verdict == "passed" and not order.keep:
                return attempt
            return await to_thread.run_sync(_keep, order, attempt, agent, judgement)
    finally:
        await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


@asynccontextmanager
async def _placed_agent(
    order: AttemptOrder,
    loaded: LoadedTask,
    repository: TaskRepository,
    solved: Path,
    folder: Path,
) -> AsyncGenerator[tuple[RunOrder, PlacedTemptation | None]]:
    """Make the folders of an attempt, and the places that its statement tempts to touch."""
    task = loaded.task
    copy = folder / "repository"
    # It makes the folder of the attempt as well.
    _ = await to_thread.run_sync(lambda: shutil.copytree(repository.folder, copy, symlinks=True))
    own = replace(repository, folder=copy)
    tempting: AbstractContextManager[PlacedTemptation | None] = nullcontext()
    if task.temptation is not None:
        tempting = place_temptation(order.git, task.temptation, own, folder)
    with tempting as temptation:
        names: Mapping[str, str] = dict[str, str]() if temptation is None else temptation.names
        providers = None
        model = order.model
        if order.scripted is not None:
            script = await to_thread.run_sync(
                lambda: script_of(loaded, repository, solved, names=names)
            )
            # Of the attempt alone: two attempts can have different places.
            model = f"{PROVIDER}/{MODEL}-{folder.name}"
            providers = order.scripted.play(f"{MODEL}-{folder.name}", script)
        place = await to_thread.run_sync(
            lambda: make_place(
                folder / "agent",
                env=order.env,
                hidden=order.hidden,
                contained=order.contained,
                test_s=task.limits.test_s,
                providers=providers,
            )
        )
        run = RunOrder(
            place=place,
            repository=copy,
            model=model,
            statement=str(placed(task.problem_statement, names)),
            limits=task.limits,
            kill=task.kill,
        )
        yield run, temptation


async def _run(run: RunOrder, loaded: LoadedTask, repository: TaskRepository) -> AgentRun:
    if loaded.task.kind == "review":
        return await run_review(run, base=repository.base, head=repository.head)
    return await run_agent(run)


async def _judge(
    order: AttemptOrder,
    loaded: LoadedTask,
    repository: TaskRepository,
    agent: AgentRun,
    *,
    temptation: PlacedTemptation | None,
    place: AgentPlace,
) -> _Judgement:
    if (ended := _unfinished(agent)) is not None:
        return ended
    if loaded.task.kind == "review":
        return await to_thread.run_sync(_judge_review, order, loaded, repository, agent)
    state = await to_thread.run_sync(_state, order.git, repository, agent)
    reasons = list(beyond_limits(state.changes, loaded.task.limits))
    if agent.status != "completed":
        reasons.append(f"the run ended as {agent.status}: {agent.error or 'no reason was given'}")
    if agent.end == "not-killed":
        reasons.append("the run ended before the event at which it is killed")
    if temptation is not None:
        session = await to_thread.run_sync(_session_text, agent)
        reasons += await to_thread.run_sync(
            lambda: temptation.violations(order.git, patch=state.patch, session=session)
        )
    graded = place.folder / "graded"
    await write_graded(order.git, loaded, repository, state.tree, graded)
    async with opened_tests(loaded, graded, place) as tests:
        grade = await tests.grade()
    reasons += [f"the test {test} fails" for test in grade.failed]
    if reasons:
        return _Judgement(
            verdict="failed", reasons=tuple(reasons), patch=state.patch, output=grade.output
        )
    if grade.flaky:
        return _Judgement(
            verdict="invalid", reasons=grade.flaky, patch=state.patch, output=grade.output
        )
    return _Judgement(verdict="passed", patch=state.patch)


def _unfinished(agent: AgentRun) -> _Judgement | None:
    """Return the judgement of an attempt that says nothing about the agent."""
    if agent.end == "timeout":
        return _Judgement(verdict="invalid", reasons=("the time limit ended it",))
    if agent.end == "not-started":
        return _Judgement(
            verdict="invalid", reasons=(f"the agent could not be started: {agent.error}",)
        )
    if agent.retryable:
        return _Judgement(
            verdict="invalid", reasons=(f"the model could not be asked: {agent.error}",)
        )
    return None


def _state(git: GitRunner, repository: TaskRepository, agent: AgentRun) -> WorkingState:
    folder = Path(agent.folder) if agent.folder else repository.folder
    # A worktree in which nothing was changed is removed at the end of its run.
    return working_state(git, repository, folder if folder.is_dir() else repository.folder)


def _judge_review(
    order: AttemptOrder, loaded: LoadedTask, repository: TaskRepository, agent: AgentRun
) -> _Judgement:
    task = loaded.task
    try:
        review = read_json(agent.output.encode(), name="the report")
    except ReviewFileInvalid as error:
        return _Judgement(verdict="failed", reasons=(str(error),), output=agent.errors)
    _count(agent, review)
    if review.stopped == "outage":
        return _Judgement(verdict="invalid", reasons=(review.partial or "an outage ended it",))
    counts = order.git.text(
        repository.folder, "diff", "--numstat", repository.base, repository.head
    )
    lines = sum(
        int(count) for row in counts.splitlines() for count in row.split("\t")[:2] if count != "-"
    )
    score = score_of(review.findings, task.defects, lines=lines)
    reasons: list[str] = []
    if review.partial is not None:
        reasons.append(f"the review is partial: {review.partial}")
    if (score.recall or 0.0) < task.min_recall:
        reasons.append(f"{score.found} of {score.defects} defects were found")
    if (score.precision or 0.0) < task.min_precision:
        reasons.append(f"{score.noise} of {score.found + score.noise} findings match no defect")
    return _Judgement(
        verdict="failed" if reasons else "passed",
        reasons=tuple(reasons),
        output=agent.output,
        review=score,
    )


def _count(agent: AgentRun, review: Review) -> None:
    header = review.header
    agent.use.turns = header.turns
    agent.use.tokens = header.tokens
    agent.use.cost_usd = header.cost_usd
    agent.session = header.session or ""


def _session_text(agent: AgentRun) -> str:
    path = Path(agent.session_file)
    return path.read_text("utf-8", "replace") if agent.session_file and path.is_file() else ""


def _forget(place: Path) -> None:
    """Remove the files that an earlier evaluation kept of the attempt."""
    for name in (SESSION, PATCH, OUTPUT):
        (place / name).unlink(missing_ok=True)
    with suppress(OSError):
        place.rmdir()


def _keep(order: AttemptOrder, attempt: Attempt, agent: AgentRun, judgement: _Judgement) -> Attempt:
    """Keep the session, the changes and the output of an attempt."""
    place = order.results / f"{attempt.task}-{attempt.number}"
    # Only for the user, as sessions are.
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    session = patch = None
    source = Path(agent.session_file)
    if agent.session_file and source.is_file():
        session = place / SESSION
        _ = shutil.copyfile(source, session)
    if judgement.patch:
        patch = place / PATCH
        _ = patch.write_text(judgement.patch, "utf-8")
    reasons = "".join(f"{reason}\n" for reason in judgement.reasons)
    output = "\n".join(part for part in (reasons, judgement.output, agent.errors) if part)
    _ = (place / OUTPUT).write_text(output, "utf-8")
    return replace(
        attempt,
        session=None if session is None else str(session),
        patch=None if patch is None else str(patch),
    )
