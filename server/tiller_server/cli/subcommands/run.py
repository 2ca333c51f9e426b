"""`tiller run`: answers one prompt and prints the answer."""

import argparse
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.events import (
    Event,
    EventSubscription,
    ExtensionError,
    MessageEnded,
    RunEnded,
    RunResult,
    ToolRunning,
    TurnEnded,
    TurnStarted,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import StorageUnavailable, TillerError, UsageError
from agent_core.kernel.json import encode as to_json
from agent_core.messages import Text, UserContent, text_of
from agent_core.resources.offers import slashed
from agent_core.session import AgentSession, Receipt
from agent_core.session.input.commands import EVENT as BY_COMMAND
from tiller_server.cli.command_exit import TerminationRequest, code_of, watch_signals
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, REFUSED, code_of_run, complain
from tiller_server.cli.run.daemon_client import Report, run_detached
from tiller_server.cli.run.prompt_input import missing_notes, read_prompt
from tiller_server.cli.run.session import local_folder, open_wanted
from tiller_server.cli.session_options import (
    add_allow_option,
    add_session_options,
    is_attended,
    read_allow_rules,
)
from tiller_server.cli.terminal.run_renderer import JsonRunRenderer, RunRenderer, TextRunRenderer
from tiller_server.cli.terminal.stdio import OutputLost, StandardStream, speak_json
from tiller_server.cli.terminal.text import SHORT_ID, nearest_name, unknown_command
from tiller_server.process.memory_privacy import forbid_ptrace

EXAMPLE: Final = 'example: tiller run --model openai/gpt-5.1 "The tests fail. Please repair them."'
TICK_S: Final = 0.1
"""How often what moves is drawn anew."""
COMMAND: Final = re.compile(r"[A-Za-z][\w:.-]*")
"""Name of a command after the slash; `/etc/hosts` is none."""

BROKEN = "error"

AnswerFit = Callable[[str, Callable[[str], Awaitable[str | None]]], Awaitable[str | None]]
"""Function that returns an answer as `--output-schema` wants it, and asks for others until then."""
OUT: Final = "standard output"
SIDE: Final = "standard error"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "prompt",
        nargs="*",
        metavar="PROMPT",
        help="the prompt; @FILE attaches a file or picture; - is standard input, which is also the prompt if none is given",
    )
    add(
        "--attach",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="attach this file or picture; can be repeated",
    )
    _add_output_options(parser)
    add(
        "--detach",
        action="store_true",
        help="run in the background without questions; print the session's id",
    )
    add(
        "--approve-plan",
        metavar="HASH",
        help="carry out the plan of the session that is continued (-c, -r), by its hash; takes no prompt",
    )
    add(
        "--worktree",
        action="store_true",
        help="work in a new git worktree, apart from the files of the workspace",
    )
    add(
        "--worktree-include",
        action="store_true",
        help="the same, with copies of the ignored files that .worktreeinclude names (.env)",
    )
    # Read by `run/daemon_client.py`, before there is a parser.
    add("--no-daemon", action="store_true", help="run in this process, also when the daemon serves")
    add_session_options(parser)
    add_allow_option(parser)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        "--json", action="store_true", help="print session, events and result as JSON lines"
    )
    shape.add_argument(
        "--verbose",
        action="store_true",
        help="in a pipe, print every answer of the model, not only the final one",
    )
    add = parser.add_argument
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="also write the final answer to FILE, if the run completes",
    )
    add(
        "--output-schema",
        type=Path,
        metavar="FILE",
        help="make the final answer JSON that fits the JSON schema in FILE",
    )


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    forbid_ptrace(environment.variables)

    def work() -> int:
        _check_output(options.output)
        read_allow_rules(options, environment)
        fit: AnswerFit | None = None
        instructions: Sequence[UserContent] = ()
        if options.output_schema is not None:
            from tiller_server.cli.run.output_schema import schema_of  # noqa: PLC0415 - seldom needed

            schema = schema_of(options)
            fit, instructions = schema.fit, schema.instructions
        prompt = (*_prompt(options), *instructions)
        if not options.detach:
            return anyio.run(_run, options, environment, prompt, fit, _open_quietly)
        if options.no_session:
            message = "--detach needs a session that is kept; leave --no-session out"
            raise UsageError(message)
        return run_detached(
            lambda report: anyio.run(
                _run, options, environment, prompt, fit, partial(_report, report, options)
            )
        )

    return code_of("run", work, debug=options.debug, as_json=options.json)


def _prompt(options: argparse.Namespace) -> Sequence[UserContent]:
    """Read the prompt; an approved plan needs none.

    Raises:
        UsageError: There is none, or one beside a plan that is to be approved.
    """
    root = local_folder(options)
    if options.approve_plan is None:
        prompt = read_prompt(options.prompt, options.attach, root=root, example=EXAMPLE)
        for note in missing_notes(options.prompt, root=root):
            complain("run", note)
        return prompt
    if options.prompt or options.attach:
        message = "--approve-plan carries out the plan as it is: leave the prompt out"
        raise UsageError(message)
    return ()


def _open_quietly(session: AgentSession) -> None:
    """Do nothing: the session is shown by its events."""
    _ = session


def _report(report: Report, options: argparse.Namespace, session: AgentSession) -> None:
    """Report the session of a run that goes on by itself."""
    if options.json:
        report(to_json(header(session)).decode() + "\n")
        return
    lines = (
        f"session {session.id} goes on in process {os.getpid()}",
        f"see it:  tiller sessions show {session.id}",
        f"stop it: kill {os.getpid()}",
    )
    report("".join(f"{line}\n" for line in lines))


async def _run(
    options: argparse.Namespace,
    environment: Environment,
    prompt: Sequence[UserContent],
    fit: AnswerFit | None,
    opened: Callable[[AgentSession], None],
) -> int:
    ending = TerminationRequest()
    result: RunResult | None = None
    answer = ""
    failure: TillerError | None = None
    if options.json:
        speak_json()
    place = _Place()
    view = (
        _json_view()
        if options.json
        else _text_view(environment, place.location, verbose=options.verbose)
    )
    ending.tidy = view.close
    # What extensions write there themselves must not get between our lines.
    with redirect_stdout(sys.stderr):
        async with _open(options, environment) as session:
            place.session = session
            opened(session)
            async with anyio.create_task_group() as group:
                await group.start(watch_signals, session, ending, group)
                group.start_soon(_turn, view)
                if is_attended():
                    group.start_soon(_ask, session, view)
                try:
                    conversation = _Conversation(session, view, group, ending)
                    result, answer = await conversation.converse(prompt, options, fit)
                except TillerError as error:
                    failure = error
                finally:
                    with suppress(OutputLost):
                        view.close()
                group.cancel_scope.cancel()
            if failure is not None:
                raise failure
            if ending.code is None and (plan := _waiting_plan(session)) is not None:
                ending.code = REFUSED
                if not options.json:
                    how = f"tiller run -r {session.id[-SHORT_ID:]} --approve-plan {plan[0]}"
                    complain("run", f"the plan waits for approval; carry it out with: {how}")
    code = ending.code
    if code is None:
        code = FAILED if result is None else code_of_run(result)
    if code == DONE and options.output is not None:
        await to_thread.run_sync(_write, options.output, answer)
    return code


@asynccontextmanager
async def _open(
    options: argparse.Namespace, environment: Environment
) -> AsyncGenerator[AgentSession]:
    """Open the session, in a new worktree if one is asked for."""
    if not (options.worktree or options.worktree_include):
        async with open_wanted(options, environment) as session:
            yield session
        return
    from tiller_server.cli.run.worktree import isolated  # noqa: PLC0415 - at first use

    async with (
        isolated(options, environment) as isolation,
        open_wanted(options, environment) as session,
    ):
        await isolation.begin(session)
        yield session


def _waiting_plan(session: AgentSession) -> tuple[str, str] | None:
    """Return the short hash and the text of the plan that waits for an answer; None: there is none."""
    if session.info.config.mode != "plan":
        return None
    from agent_core.session.history.plans import open_plan  # noqa: PLC0415 - at first use

    plan = open_plan(session.info.messages)
    return None if plan is None else (plan.short_hash, plan.markdown)


def _check_output(path: Path | None) -> None:
    """Check that an answer can be written there, before anything is paid for."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        message = f"--output {str(path)!r} cannot be written: name a file in a folder that exists"
        raise UsageError(message)


def _write(path: Path, answer: str) -> None:
    try:
        _ = path.write_text(f"{answer}\n" if answer else "", "utf-8")
    except OSError as error:
        message = f"--output {str(path)!r} could not be written: {error.strerror or error}"
        raise StorageUnavailable(message) from error


class _Place(Struct):
    """Where the session is kept, as soon as there is one."""

    session: AgentSession | None = None

    def location(self) -> str | None:
        return None if self.session is None else self.session.info.location


async def _turn(view: RunRenderer) -> None:
    """Draw what moves, so that the end of what was said does not wait for more."""
    # Whoever writes next is told that nobody looks any more.
    with suppress(OutputLost):
        while True:
            view.tick()
            await anyio.sleep(TICK_S)


async def _ask(session: AgentSession, view: RunRenderer) -> None:
    from agent_core.channels import serve_channel  # noqa: PLC0415 - at first use
    from tiller_server.cli.terminal.permission_prompt import TerminalChannel, read_terminal_line  # noqa: PLC0415 - at first use

    def write_question(text: str) -> None:
        from tiller_server.cli.terminal.permission_prompt import discard_typed_input  # noqa: PLC0415 - at first use

        discard_typed_input()
        view.interject(text)

    channel = TerminalChannel(
        read_line=read_terminal_line, write_question=write_question, write_note=view.interject
    )
    await serve_channel(channel, session)


class _Conversation(Struct):
    """The prompts that the command sends, and the runs that answer them."""

    session: AgentSession
    view: RunRenderer
    group: TaskGroup
    ending: TerminationRequest

    async def converse(
        self, prompt: Sequence[UserContent], options: argparse.Namespace, fit: AnswerFit | None
    ) -> tuple[RunResult | None, str]:
        """Send the prompt, and corrections while the answer does not fit the schema; return the result and the final answer."""
        send = partial(_send, self.session, prompt, options)
        result, answer = await self._exchange(partial(_send_prompt, self.session, send, self.view))
        if fit is not None and self._is_answered(result):
            from tiller_server.cli.run.output_schema import AnswerUnfit  # noqa: PLC0415 - loaded by now

            async def ask(correction: str) -> str | None:
                nonlocal result, answer
                self.view.interim(answer)
                content = (Text(text=correction),)
                result, answer = await self._exchange(lambda _: self.session.prompt(content))
                return answer if self._is_answered(result) else None

            try:
                answer = await fit(answer, ask) or answer
            except AnswerUnfit:
                self.view.interim(answer)
                self.view.end(result, "")
                raise
        self.view.end(result, answer)
        return result, answer

    def _is_answered(self, result: RunResult | None) -> bool:
        """Return whether a run ended with an answer that a schema is about: a plan is none."""
        is_completed = result is not None and result.status == "completed"
        return is_completed and self.ending.code is None and _waiting_plan(self.session) is None

    async def _exchange(
        self, send: Callable[[EventSubscription], Awaitable[Receipt]]
    ) -> tuple[RunResult | None, str]:
        """Send a prompt and show all events to the last one; return the result and the final answer."""
        session = self.session
        reader = session.subscribe(partials=self.view.shows_partials)
        final = FinalAnswer()
        try:
            receipt = await send(reader)
            if self.ending.code is not None:
                _ = await session.abort()  # the signal came when there was nothing to stop yet
            self.group.start_soon(_stop_at_end, session, reader)
            commanded = DONE
            while events := await reader.take():
                for stamped in events:
                    if interim_text := final.see(stamped.event):
                        self.view.interim(interim_text)
                    self.view.see(stamped)
                    commanded = _after(stamped.event, commanded)
                    # A run that an earlier process left behind may be told to have ended first.
                    if _is_last(stamped.event, receipt, session):
                        reader.finish()
        finally:
            reader.close()
        if receipt.accepted == "handled" and self.ending.code is None:
            self.ending.code = commanded
        result = await session.wait(receipt.run) if receipt.run else None
        if session.info.snapshot().tasks:
            # A task that ends later has its report answered by a run of its own.
            result = await session.wait_idle()
        answer, rest = final.close(result)
        if (plan := _waiting_plan(session)) is not None:
            _, answer = plan
        if rest:
            self.view.interim(rest)
        return result, answer


def _after(event: Event, code: int) -> int:
    """Return the exit code of a command of an extension, as far as it has come: that it failed outlasts its runs."""
    match event:
        case ExtensionError(event=point) if point == BY_COMMAND:
            return FAILED
        case RunEnded() if code == DONE:
            return code_of_run(event)
        case _:
            return code


async def _send(
    session: AgentSession,
    prompt: Sequence[UserContent],
    options: argparse.Namespace,
) -> Receipt:
    """Send the prompt, or approve a plan by its hash.

    Raises:
        UsageError: No plan of that hash waits, or the prompt names a command that does not exist.
    """
    if options.approve_plan is None:
        await _check_command(session, prompt)
        return await session.prompt(prompt)
    from agent_core.session.history.plans import approve_plan  # noqa: PLC0415 - at first use

    mode = "auto" if options.permission in {"auto", "yolo"} else "ask"
    return await approve_plan(session, sha256=options.approve_plan, mode=mode)


async def _check_command(session: AgentSession, prompt: Sequence[UserContent]) -> None:
    """Refuse a prompt that begins with an unknown command: a model would be paid for a typing error."""
    first = prompt[0] if prompt else None
    said = slashed(first.text) if isinstance(first, Text) else None
    if said is None or not COMMAND.fullmatch(said.name):
        return
    names = [one.name for one in await session.resources.refresh()]
    if said.name not in names:
        raise UsageError(unknown_command(said.name, nearest_name(said.name, names)))


async def _send_prompt(
    session: AgentSession,
    send: Callable[[], Awaitable[Receipt]],
    view: RunRenderer,
    reader: EventSubscription,
) -> Receipt:
    """Send the prompt; when it is refused, show the session's pending events, which may hold the reason."""
    try:
        receipt = await send()
    except TillerError:
        if pending := reader.take_now():
            view.begin(header(session))
            for stamped in pending:
                view.see(stamped)
        raise
    view.begin(header(session))
    return receipt


async def _stop_at_end(session: AgentSession, reader: EventSubscription) -> None:
    """End the view when the session ends without a last event: a command has none."""
    await session.resources.settled()
    _ = await session.wait_idle()
    while has_tasks(session):
        await session.tasks.wait()
        _ = await session.wait_idle()
    reader.finish()


def _is_last(event: Event, receipt: Receipt, session: AgentSession) -> bool:
    """Return whether nothing follows an event: a background task would, since its report is answered."""
    return isinstance(event, RunEnded) and event.run == receipt.run and not has_tasks(session)


def has_tasks(session: AgentSession) -> bool:
    """Return whether a task of the session has not ended."""
    return any(not one.is_ended for one in session.info.snapshot().tasks)


def header(session: AgentSession) -> JsonObject:
    """Return the first line of a JSON stream, which describes the session."""
    info = session.info
    snapshot = info.snapshot()
    return {
        "type": "session",
        "version": 3,
        "id": session.id,
        "cwd": info.root,
        "model": snapshot.config.model,
        "file": info.location,
    }


class FinalAnswer(Struct):
    """The whole answer that nothing has followed so far."""

    _text: str = ""
    _status: str = "completed"

    def see(self, event: Event) -> str:
        """Follow an event; returns words that turn out not to be the final answer, empty if none do."""
        earlier = ""
        match event:
            case MessageEnded(role="assistant", content=content):
                earlier, self._text = self._text, text_of(content)
            case ToolRunning() | TurnStarted():
                earlier, self._text = self._text, ""
            case TurnEnded(stop_reason=reason) if reason == BROKEN:
                self._text = ""
            case RunEnded(status=status):
                self._status = status
            case _:
                pass
        return earlier

    def close(self, result: RunResult | None) -> tuple[str, str]:
        """Return the final answer and the text that is not part of it; a run that did not complete has no answer.

        Args:
            result: Result of the run; None: a command ran, which may have had runs of its own.
        """
        if self._status != "completed":
            return "", self._text
        return (self._text if result is None else result.text), ""


def _json_view() -> RunRenderer:
    """Return events for programs."""
    return JsonRunRenderer(
        out=StandardStream(sys.stdout, name=OUT), side=StandardStream(sys.stderr, name=SIDE)
    )


def _text_view(
    environment: Environment, location: Callable[[], str | None], *, verbose: bool
) -> RunRenderer:
    """Create what a person looks at: on a terminal it moves, in a pipe the final answer stands alone."""
    out, side = StandardStream(sys.stdout, name=OUT), StandardStream(sys.stderr, name=SIDE)
    shows_out, shows_side = environment.moves(sys.stdout), environment.moves(sys.stderr)
    if not (shows_out or shows_side):
        return TextRunRenderer(
            out=out,
            side=side,
            colour=environment.colour(sys.stderr),
            location=location,
            verbose=verbose,
        )
    from tiller_server.cli.terminal.live_markdown import LiveMarkdown  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions  # noqa: PLC0415 - only terminals need it
    from tiller_server.cli.terminal.status_area import StatusArea  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.status_line import StatusLine, frames_for  # noqa: PLC0415 - see above

    stream = sys.stdout if shows_out else sys.stderr
    colour = environment.colour(stream)
    screen = StatusArea(out if shows_out else side)
    return LiveView(
        screen=screen,
        status=StatusLine(now_s=time.monotonic, frames=frames_for(stream.encoding)),
        markdown=LiveMarkdown(screen, colour=colour),
        shape=LiveViewOptions(
            colour=colour,
            answer=None if shows_out else out,
            verbose=verbose,
            plain_side=None if shows_side else side,
        ),
        location=location,
    )
