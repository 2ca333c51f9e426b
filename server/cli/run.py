"""`tiller run`: one prompt without an editor."""

import argparse
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import Reader, RunEnded, RunResult
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode as to_json
from agent_core.session import AgentSession
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

EXAMPLE = 'example: tiller run --model openai/gpt-5.1 "The tests fail. Please repair them."'
MODES = ("plan", "ask", "auto", "yolo")


@dataclass(slots=True)
class Ending:
    """How the run was asked to end, if it was."""

    code: int | None = None
    presses: int = 0
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


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
    add("--debug", action="store_true", help="show tracebacks")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        prompt = _prompt(options.prompt)
        return anyio.run(_run, options, environment, prompt)
    except TillerError as error:
        if options.debug:
            raise
        _tell(options, error)
        return code_of_error(error)


def _prompt(words: list[str]) -> str:
    text = " ".join(words).strip()
    if (not text or text == "-") and not sys.stdin.isatty():
        text = sys.stdin.read().strip()
    if not text or text == "-":
        message = f"there is no prompt; give it as an argument or on standard input. {EXAMPLE}"
        raise UsageError(message)
    return text


async def _run(options: argparse.Namespace, environment: Environment, prompt: str) -> int:
    ending = Ending()
    result: RunResult | None = None
    failure: TillerError | None = None
    async with open_session(_request(options, environment)) as session:
        view = _view(options, environment, session)
        async with anyio.create_task_group() as group:
            group.start_soon(_watch_signals, session, ending)
            with ending.scope:
                try:
                    result = await _converse(session, prompt, view, group)
                except TillerError as error:
                    failure = error
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
    if ending.code is not None:
        return ending.code
    return FAILED if result is None else code_of_run(result)


def _request(options: argparse.Namespace, environment: Environment) -> SessionRequest:
    layer: dict[str, JsonValue] = {}
    if options.permission:
        layer["permission"] = {"mode": options.permission}
    return SessionRequest(
        workspace=Path(options.workspace),
        session=options.session or ("latest" if options.latest else "new"),
        env=environment.variables,
        settings={"request": layer} if layer else {},
        model=options.model,
        tools=options.tools,
        store="memory" if options.no_session else "files",
    )


def _view(options: argparse.Namespace, environment: Environment, session: AgentSession) -> View:
    if options.json:
        return JsonView(sys.stdout)
    return TextView(
        out=sys.stdout,
        side=sys.stderr,
        colour=environment.colour(sys.stderr),
        location=lambda: session.info.location,
    )


async def _converse(
    session: AgentSession, prompt: str, view: View, group: TaskGroup
) -> RunResult | None:
    """Say the prompt and show what comes, to the last event."""
    reader = session.subscribe()
    receipt = await session.prompt(prompt)
    view.begin(header(session))
    group.start_soon(_stop_at_end, session, reader)
    try:
        while events := await reader.take():
            for stamped in events:
                view.see(stamped)
                if isinstance(stamped.event, RunEnded):
                    reader.finish()
    finally:
        reader.close()
    result = await session.wait(receipt.run) if receipt.run else None
    view.end(result)
    return result


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


async def _watch_signals(session: AgentSession, ending: Ending) -> None:
    """The first Ctrl-C cancels and settles, the second leaves at once; SIGTERM cancels and settles."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            ending.presses += 1
            ending.code = TERMINATED if number == signal.SIGTERM else INTERRUPTED
            if ending.presses > 1:
                ending.scope.cancel()
                return
            _ = sys.stderr.write("stopping; once more leaves at once\n")
            with suppress(TillerError):
                _ = await session.abort()


def _tell(options: argparse.Namespace, error: TillerError) -> None:
    if options.json:
        body = to_json({"type": "error", "error": {"kind": error.kind, "message": str(error)}})
        _ = sys.stdout.write(body.decode() + "\n")
        _ = sys.stdout.flush()
    complain("run", str(error))
