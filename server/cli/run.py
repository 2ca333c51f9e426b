"""`tiller run`: one prompt without an editor."""

import argparse
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NoReturn

import anyio
import psutil
from anyio.abc import TaskGroup, TaskStatus

from agent_core.assembly import SessionRequest
from agent_core.events import Reader, RunEnded, RunResult
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode as to_json
from agent_core.session import AgentSession, Receipt
from server.cli.ask_terminal import ask_on_terminal, read_terminal_line
from server.cli.environment import Commands, Environment
from server.cli.exits import (
    FAILED,
    INTERRUPTED,
    TERMINATED,
    code_of_error,
    code_of_run,
    complain,
)
from server.cli.render import JsonView, TextView, View
from server.cli.run_session import open_or_copy
from server.cli.standard import Output, OutputLost, abandon, speak_json
from server.lsp.own_process import hide

EXAMPLE = 'example: tiller run --model openai/gpt-5.1 "The tests fail. Please repair them."'
MODES = ("plan", "ask", "auto", "yolo")
MOST_DIGITS = 15
"""Of a count: no more fit into a number of JSON without loss."""


@dataclass(slots=True)
class Ending:
    """How the run was asked to end, if it was."""

    code: int | None = None


def add_parser(commands: Commands) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "run", help="answer one prompt, without an editor", description=__doc__, epilog=EXAMPLE
    )
    add = parser.add_argument
    add("prompt", nargs="*", metavar="PROMPT", help="what to say; from standard input when missing")
    add("--workspace", metavar="DIR", default=".", help="the folder to work in [.]")
    add("--model", metavar="PROVIDER/ID", help="the model to ask")
    add("--tools", metavar="SET", help="a preset or names: default, minimal, readonly, +grep …")
    add(
        "--json", action="store_true", help="print the session header and every event as JSON lines"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="ID", help="go on with this session")
    which.add_argument(
        "--continue", dest="latest", action="store_true", help="go on with the latest"
    )
    which.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    add("--permission", choices=MODES, help="what may run without being asked")
    add("--trust", action="store_true", help="trust the workspace for this run")
    _add_budgets(parser)
    add("--debug", action="store_true", help="show tracebacks")


def _add_budgets(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--budget-usd", type=_amount, metavar="N", help="end the run when it has cost so much")
    add("--max-tokens", type=_count, metavar="N", help="end it after so many tokens of all kinds")
    add("--max-turns", type=_count, metavar="N", help="end it after so many answers of the model")
    add("--max-minutes", type=_amount, metavar="N", help="end it after so many minutes")


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not isfinite(amount) or amount < 0:
        message = f"{text!r} is no amount; give a number from 0 on, as 0.5"
        raise argparse.ArgumentTypeError(message)
    return amount


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        message = f"{text!r} is no count; give a whole number from 0 on, as 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    hide()
    try:
        prompt = _prompt(options.prompt)
        return anyio.run(_run, options, environment, prompt)
    except OutputLost as error:
        complain("run", str(error))
        abandon()
        return FAILED
    except TillerError as error:
        if options.debug:
            raise
        _tell(options, error)
        return code_of_error(error)


def _prompt(words: list[str]) -> str:
    text = " ".join(words).strip()
    if (not text or text == "-") and not sys.stdin.isatty():
        text = sys.stdin.read().strip()
    # What the shell passed on in another encoding than UTF-8 must not reach files and wires.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text or text == "-":
        message = f"there is no prompt; give it as an argument or on standard input. {EXAMPLE}"
        raise UsageError(message)
    return text


async def _run(options: argparse.Namespace, environment: Environment, prompt: str) -> int:
    ending = Ending()
    result: RunResult | None = None
    failure: TillerError | None = None
    async with open_or_copy(_request(options, environment)) as session:
        view = _view(options, environment, session)
        await session.changes.take_up()
        async with anyio.create_task_group() as group:
            await group.start(_watch_signals, session, ending, group)
            if _is_attended():
                group.start_soon(_ask, session)
            try:
                result = await _converse(session, prompt, view, group, ending)
            except TillerError as error:
                failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
    if ending.code is not None:
        return ending.code
    return FAILED if result is None else code_of_run(result)


def _request(options: argparse.Namespace, environment: Environment) -> SessionRequest:
    permission: dict[str, JsonValue] = {}
    if options.permission:
        permission["mode"] = options.permission
    if not _is_attended():
        # Nobody is there to be asked, so nobody is waited for.
        permission["fallback"] = "rules"
    budgets: dict[str, JsonValue] = {
        name: value
        for name, value in (
            ("usd", options.budget_usd),
            ("tokens", options.max_tokens),
            ("turns", options.max_turns),
            ("minutes", options.max_minutes),
        )
        if value is not None
    }
    groups: dict[str, dict[str, JsonValue]] = {"permission": permission, "budgets": budgets}
    layer: dict[str, JsonValue] = {name: group for name, group in groups.items() if group}
    return SessionRequest(
        workspace=Path(options.workspace),
        trusted=True if options.trust else None,
        session=options.session or ("latest" if options.latest else "new"),
        env=environment.variables,
        settings={"request": layer} if layer else {},
        model=options.model,
        tools=options.tools,
        store="memory" if options.no_session else "files",
    )


def _is_attended() -> bool:
    """Tell whether a person can be asked: standard input and the stream of the question are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def _ask(session: AgentSession) -> None:
    side = Output(sys.stderr, name="standard error")

    def write(text: str) -> None:
        side.write(text)
        side.flush()

    await ask_on_terminal(session, read_line=read_terminal_line, write=write)


def _view(options: argparse.Namespace, environment: Environment, session: AgentSession) -> View:
    out = Output(sys.stdout, name="standard output")
    if options.json:
        speak_json()
        return JsonView(out)
    return TextView(
        out=out,
        side=Output(sys.stderr, name="standard error"),
        colour=environment.colour(sys.stderr),
        location=lambda: session.info.location,
    )


async def _converse(
    session: AgentSession, prompt: str, view: View, group: TaskGroup, ending: Ending
) -> RunResult | None:
    """Say the prompt and show what comes, to the last event."""
    reader = session.subscribe()
    try:
        receipt = await _say(session, prompt, view, reader)
        if ending.code is not None:
            _ = await session.abort()  # the signal came when there was nothing to stop yet
        group.start_soon(_stop_at_end, session, reader)
        while events := await reader.take():
            for stamped in events:
                view.see(stamped)
                # A run that an earlier process left behind may be told to have ended first.
                if isinstance(stamped.event, RunEnded) and stamped.event.run == receipt.run:
                    reader.finish()
    finally:
        reader.close()
    result = await session.wait(receipt.run) if receipt.run else None
    view.end(result)
    return result


async def _say(session: AgentSession, prompt: str, view: View, reader: Reader) -> Receipt:
    """Say the prompt; when it is refused, what the session has to tell may be the reason and is shown."""
    try:
        receipt = await session.prompt(prompt)
    except TillerError:
        if told := reader.take_now():
            view.begin(header(session))
            for stamped in told:
                view.see(stamped)
        raise
    view.begin(header(session))
    return receipt


async def _stop_at_end(session: AgentSession, reader: Reader) -> None:
    """End the view when the session ends without a last event."""
    _ = await session.wait_idle()
    reader.finish()


def header(session: AgentSession) -> JsonObject:
    """Give the first line of a JSON stream: what session this is."""
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


async def _watch_signals(
    session: AgentSession, ending: Ending, group: TaskGroup, *, task_status: TaskStatus[None]
) -> None:
    """The first Ctrl-C or SIGTERM cancels and settles, the second leaves at once."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            if ending.code is not None:
                _leave(ending.code)
            ending.code = TERMINATED if number == signal.SIGTERM else INTERRUPTED
            with suppress(OSError):
                _ = sys.stderr.write("stopping; once more leaves at once\n")
            group.start_soon(_abort, session)


async def _abort(session: AgentSession) -> None:
    with suppress(TillerError):
        _ = await session.abort()


def _leave(code: int) -> NoReturn:
    """End the process now, and with it what it started. The session's file is whole at any time."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()
    os._exit(code)


def _tell(options: argparse.Namespace, error: TillerError) -> None:
    if options.json:
        speak_json()
        body = to_json({"type": "error", "error": {"kind": error.kind, "message": str(error)}})
        _ = sys.stdout.write(body.decode() + "\n")
        _ = sys.stdout.flush()
    complain("run", str(error))
