"""Runs an evaluation and writes its reports."""

import argparse
import sys

import anyio
import anyio.to_thread
from msgspec.structs import replace

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError
from agent_core.resources.paths import app_paths
from tiller_server.cli.command_exit import TerminationRequest, watch_for
from tiller_server.cli.environment import Environment
from tiller_server.cli.evaluation.progress_view import ProgressView
from tiller_server.cli.exit_codes import DONE, FINDINGS
from tiller_server.cli.model_registry import open_registry
from tiller_server.evaluation.errors import EvaluationImpossible
from tiller_server.evaluation.reports.files import write_reports
from tiller_server.evaluation.reports.text_report import as_json, as_table
from tiller_server.evaluation.result import Evaluation
from tiller_server.evaluation.suite import SCRIPTED, SuiteOrder, evaluate, opened_suite
from tiller_server.evaluation.tasks.task import load_tasks


async def run_evaluation(options: argparse.Namespace, environment: Environment) -> int:
    """Run an evaluation, or check its tasks; return the exit code.

    Raises:
        TillerError: Tasks cannot be used, or the reports cannot be written.
    """
    order = await anyio.to_thread.run_sync(_order, options, environment)
    view = ProgressView(sys.stderr)
    if not options.check and order.model != SCRIPTED:
        # Before anything is tried, and as one error.
        async with open_registry(app_paths(environment.variables), environment) as registry:
            named = registry.resolve(order.model)
            ref = registry.usable(named.model.ref).ref
            order = replace(order, model=f"{ref}:{named.thinking}" if named.thinking else ref)
    if options.check:
        async with opened_suite(order, view) as suite:
            await suite.check()
        return DONE
    evaluation, code = await _evaluated(order, view)
    if evaluation is None:
        return code
    paths = await anyio.to_thread.run_sync(write_reports, evaluation, order.results)
    _ = sys.stdout.write(as_json(evaluation) if options.json else as_table(evaluation))
    _ = sys.stderr.write("".join(f"written: {path}\n" for path in paths))
    passed = all(attempt.verdict == "passed" for attempt in evaluation.attempts)
    return DONE if passed else FINDINGS


async def _evaluated(order: SuiteOrder, view: ProgressView) -> tuple[Evaluation | None, int]:
    """Evaluate until the end or a signal; return the result, and the exit code of the signal.

    A signal ends the processes of all agents, which would otherwise go on and cost money.
    """
    ending = TerminationRequest()
    evaluation: Evaluation | None = None
    failure: TillerError | None = None
    scope = anyio.CancelScope()

    async def stop() -> None:
        scope.cancel()

    async with anyio.create_task_group() as group:
        await group.start(watch_for, stop, ending, group)
        with scope:
            try:
                evaluation = await evaluate(order, view)
            except TillerError as error:
                failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return (evaluation, DONE) if ending.code is None else (None, ending.code)


def _order(options: argparse.Namespace, environment: Environment) -> SuiteOrder:
    """Read the tasks, and make the folder of the results."""
    tasks = load_tasks(options.folder, names=options.task, kinds=options.kind)
    results = options.output.expanduser().absolute()
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"--output {str(results)!r} cannot be made ({error.strerror})"
        raise EvaluationImpossible(message) from error
    return SuiteOrder(
        suite=options.folder.resolve(),
        tasks=tasks,
        model=options.model,
        k=options.k,
        jobs=options.jobs,
        env=environment.variables,
        results=results,
        keep=options.keep,
        uncontained=options.uncontained,
        clock=SystemClock(),
    )
