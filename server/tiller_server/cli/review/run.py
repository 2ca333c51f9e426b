"""Makes the review that `tiller review` was asked for, shows and posts it, and says how it ended."""

import argparse
import shutil
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path, PureWindowsPath
from typing import Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.events import Budgets
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.resources.paths import app_paths
from tiller_server.cli.command_exit import TerminationRequest, abort, watch_for
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import (
    BUDGET,
    DONE,
    FAILED,
    FINDINGS,
    REFUSED,
    StoppedEarly,
    complain,
)
from tiller_server.cli.review.files import (
    check_folders,
    content_of,
    read_outputs,
    write_baseline,
    write_reports,
)
from tiller_server.cli.review.progress_view import ReviewProgressView
from tiller_server.cli.terminal.stdio import OutputClosed, StandardStream, abandon, speak_json
from tiller_server.review.engine import review
from tiller_server.review.findings.baseline import not_accepted, read_baseline
from tiller_server.review.findings.redaction import redacted
from tiller_server.review.findings.rejections import RejectedFinding
from tiller_server.review.findings.result import SEVERITIES, Review
from tiller_server.review.git.file_filter import ReviewFileFilter
from tiller_server.review.git.revisions import WORKING_TREE
from tiller_server.review.options import ReviewCancellation, ReviewOrder
from tiller_server.review.outputs import FORMATS
from tiller_server.review.outputs.json_report import read_json
from tiller_server.review.outputs.summary import counted
from tiller_server.review.outputs.terminal import TerminalLayout, render_terminal

STOPS: Final[Mapping[str, int]] = {"budget": BUDGET, "refused": REFUSED}
POST_AGAIN: Final = "post the rest with --from and the JSON report, or by another review"
PLAIN_WIDTH: Final = 100
WIDEST: Final = 120

CI_CEILING_USD: Final = 2.0
CI_MINUTES: Final = 30.0
NO_BASELINE: Final = "none"


class _ReviewSignalHandler(Struct, kw_only=True):
    """How far a review is, and what a signal means there.

    The first one while the model works stops only the model, and the findings so far are shown; any other cancels all.
    """

    progress: ReviewProgressView
    ending: TerminationRequest = msgspec.field(default_factory=TerminationRequest)
    stop: ReviewCancellation = msgspec.field(default_factory=ReviewCancellation)
    _scope: anyio.CancelScope | None = None

    @contextmanager
    def given_up(self) -> Generator[anyio.CancelScope]:
        """Create a scope that a signal cancels. While the model is asked, the first signal stops only the model."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                yield scope
            finally:
                self._scope = None

    async def settle(self) -> None:
        """Do what the first signal asks for."""
        session = self.progress.session
        if session is not None and not self.stop.asked and not self.progress.is_made:
            self.stop.asked = True
            await abort(session)
        elif self._scope is not None:
            self._scope.cancel()


async def run_review(options: argparse.Namespace, environment: Environment) -> int:
    """Do it; gives the exit code.

    Raises:
        TillerError: There is no review to show.
    """
    stopping = _ReviewSignalHandler(progress=ReviewProgressView(environment=environment))
    ending = stopping.ending
    code = FAILED
    failure: TillerError | None = None
    async with anyio.create_task_group() as group:
        _ = await group.start(watch_for, stopping.settle, ending, group)
        try:
            code = await _reviewed(options, environment, stopping)
        except TillerError as error:
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return code if ending.code is None else ending.code


async def _reviewed(
    options: argparse.Namespace, environment: Environment, stopping: _ReviewSignalHandler
) -> int:
    outputs = read_outputs(options.output)
    # Whatever can be known to be wrong is said before a model is paid.
    await check_folders(
        [*(path for _, path in outputs), options.write_baseline, options.save_session]
    )
    if options.fix is not None:
        from tiller_server.cli.review.fix import check_target  # noqa: PLC0415 - only this needs it

        await check_target(options, environment)
    post = await _poster(options, environment)
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    out = StandardStream(sys.stdout, name="standard output")
    if options.format != "text":
        speak_json()
    # What extensions write there themselves must not get between our lines.
    with redirect_stdout(sys.stderr):
        made = await _made(options, environment, stopping, redactor)
        session_file = made.header.session
        made = _without_places(made)
        await write_reports(made, outputs)
        if options.write_baseline is not None:
            await write_baseline(made, options.write_baseline)
            complain(
                "review",
                f"{options.write_baseline} accepts {counted(len(made.findings), 'finding')} of this review",
            )
    _print(_printed(made, options, environment, stopping.progress, redactor), out)
    if options.save_session is not None:
        await _save_session(session_file, options.save_session)
    if options.fix is not None and stopping.ending.code is None:
        from tiller_server.cli.review.fix import fix  # noqa: PLC0415 - only this needs it

        with stopping.given_up() as scope:
            await fix(made, options, environment)
        if scope.cancelled_caught:
            complain("review", "the repair was stopped, and nothing of it was kept")
    if post is not None and stopping.ending.code is None:
        with stopping.given_up() as scope:
            await post(made, out)
        if scope.cancelled_caught:
            complain("review", f"posting was stopped; {POST_AGAIN}")
    return _code(made, options)


def _print(text: str, out: StandardStream) -> None:
    try:
        out.write(text)
        out.flush()
    except OutputClosed:
        abandon()  # who closed the pipe has what was wanted; what is to be written, mended or posted still is


async def _made(
    options: argparse.Namespace,
    environment: Environment,
    stopping: _ReviewSignalHandler,
    redactor: Redactor,
) -> Review:
    if options.stored is not None:
        stored = read_json(await content_of(options.stored), name=str(options.stored))
        return redacted(await _without_accepted(stored, options.baseline), redactor)
    workspace = Path(await anyio.Path(options.workspace).resolve())
    variables = environment.variables
    order = replace(
        await order_of(options, variables),
        rejected=await _rejected(workspace, variables, redactor),
    )
    request = SessionRequest(
        workspace=workspace,
        trusted=options.trust,
        env=environment.variables,
        model=options.model,
        store="memory" if options.no_session else "files",
        traceparent=environment.variables.get("TRACEPARENT", ""),
        redactor=redactor,
    )
    made: list[Review] = []
    with stopping.given_up():
        made.append(await review(order, request, watcher=stopping.progress, stop=stopping.stop))
    if not made:
        raise StoppedEarly(stopping.ending.code)
    if await _has_memory(variables):
        from tiller_server.cli.review.rejections import store_review  # noqa: PLC0415 - as below

        await store_review(made[0], workspace, variables, redactor)
    return made[0]


async def _has_memory(variables: Mapping[str, str]) -> bool:
    """Return whether memory is on in any project."""
    return await anyio.Path(app_paths(variables).memory / "projects.json").exists()


async def _rejected(
    workspace: Path, variables: Mapping[str, str], redactor: Redactor
) -> tuple[RejectedFinding, ...]:
    if not await _has_memory(variables):
        return ()
    from tiller_server.cli.review.rejections import rejected_findings  # noqa: PLC0415 - only this needs it

    return await rejected_findings(workspace, variables, redactor)


async def _without_accepted(stored: Review, baseline: str | None) -> Review:
    """Leave out of a stored report what a file accepts; the repository at its head is not there to be asked."""
    accepted = await _read_accepted(baseline) or frozenset[str]()
    left = not_accepted(stored.findings, accepted, texts={})
    return replace(
        stored, findings=left, accepted=stored.accepted + len(stored.findings) - len(left)
    )


def _without_places(made: Review) -> Review:
    """Name the session by its id: where its file lies is for nobody who reads the report."""
    named = made.header.session
    if named is None:
        return made
    session = PureWindowsPath(named).stem.rpartition("_")[2]
    return replace(made, header=replace(made.header, session=session))


def _printed(
    made: Review,
    options: argparse.Namespace,
    environment: Environment,
    progress: ReviewProgressView,
    redactor: Redactor,
) -> str:
    if options.format != "text":
        return FORMATS[options.format](made)
    width = PLAIN_WIDTH
    if sys.stdout.isatty():
        width = min(WIDEST, shutil.get_terminal_size().columns)
    paper = TerminalLayout(
        width=width,
        colour=environment.colour(sys.stdout),
        texts={path: tuple(map(redactor.text, lines)) for path, lines in progress.lines.items()},
    )
    return redactor.text(render_terminal(made, paper))


async def _save_session(file: str | None, path: Path) -> None:
    if file is None:
        complain(
            "review", "there is no session to save: no model was asked, or --no-session was set"
        )
        return
    content = await content_of(Path(file))
    try:
        _ = await anyio.Path(path).write_bytes(content)
    except OSError as error:
        complain("review", f"the session cannot be saved as {str(path)!r} ({error.strerror})")


async def _poster(
    options: argparse.Namespace, environment: Environment
) -> Callable[[Review, StandardStream], Awaitable[None]] | None:
    """Find out where the review goes, and give what brings it there; None: nowhere."""
    if not (options.post or options.dry_run):
        return None
    from tiller_server.review.posting import (  # noqa: PLC0415 - an HTTP client, which few reviews need
        plan_review,
        post_review,
        target_from,
    )

    target = await target_from(environment.variables)
    clock = SystemClock()

    async def plan(made: Review, out: StandardStream) -> None:
        out.write(await plan_review(made, target, clock=clock))
        out.flush()

    async def post(made: Review, _: StandardStream) -> None:
        posted = await post_review(made, target, clock=clock)
        for line in posted.lines:
            complain("review", line)

    return plan if options.dry_run else post


def _code(made: Review, options: argparse.Namespace) -> int:
    """Findings come before what ended the review early: they are there to be mended either way."""
    failing = (
        SEVERITIES[: SEVERITIES.index(options.fail_on) + 1] if options.fail_on != "never" else ()
    )
    if any(finding.severity in failing for finding in made.findings):
        return FINDINGS
    if made.stopped is None or options.on_partial == "pass":
        return DONE
    return STOPS.get(made.stopped, FAILED)


async def order_of(options: argparse.Namespace, variables: Mapping[str, str]) -> ReviewOrder:
    """Read what the options name, and give what is asked.

    Raises:
        ReviewFileInvalid: A baseline or an earlier report cannot be used.
    """
    in_ci = _is_ci(variables)
    minutes = options.max_minutes
    return ReviewOrder(
        base=options.base,
        head=WORKING_TREE if options.uncommitted else options.head,
        scope=ReviewFileFilter(paths=tuple(options.path), excluded=tuple(options.exclude)),
        wishes=options.instructions.strip(),
        most_findings=options.max_findings,
        least_confidence=options.min_confidence,
        budgets=Budgets(
            usd=options.budget_usd,
            tokens=options.max_tokens,
            turns=options.max_turns,
            minutes=CI_MINUTES if minutes is None and in_ci else minutes,
        ),
        ceiling_usd=CI_CEILING_USD if in_ci else None,
        accepted=await _read_accepted(options.baseline),
        earlier=await _earlier(options.previous),
    )


def _is_ci(variables: Mapping[str, str]) -> bool:
    """Return whether a service runs this, where nobody watches what it costs."""
    return variables.get("CI", "").lower() in {"true", "1"}


async def _read_accepted(named: str | None) -> frozenset[str] | None:
    """Read the fingerprints that the file of `--baseline` accepts; None: no file is named.

    Raises:
        ReviewFileInvalid: It cannot be used.
    """
    if named is None:
        return None
    if named == NO_BASELINE:
        return frozenset()
    return read_baseline(await content_of(Path(named)), name=named)


async def _earlier(path: Path | None) -> Review | None:
    # In CI it comes from a cache, which may be empty.
    if path is None or not await anyio.Path(path).exists():
        return None
    return read_json(await content_of(path), name=str(path))
