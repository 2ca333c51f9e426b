"""`tiller fleet`: jobs for many repositories, on the workers of one machine or many."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import JsonValue, encode
from agent_core.resources.paths import app_paths
from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import CommandParsers, Environment
from tiller_server.cli.exit_codes import DONE
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import safe
from tiller_server.fleet.config import FleetConfig, read_config

EXAMPLE: Final = (
    "examples: tiller fleet worker --config fleet.json · tiller fleet submit --repo team/app --number 7 "
    "--head 0123abc --base main · tiller fleet status --json"
)
STATES: Final = ("queued", "running", "posting", "done", "failed", "superseded", "cancelled")
NEEDED: Final = ("croniter", "dbos", "psycopg", "sqlalchemy", "starlette", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs: CommandParsers = parser.add_subparsers(
        dest="verb",
        required=True,
        metavar="worker|serve|submit|status|job|cancel|retry|drain|slots",
    )
    worker = verbs.add_parser("worker", help="run jobs in a slot of the fleet, until it is ended")
    serve = verbs.add_parser("serve", help="accept webhooks and requests, and serve the page")
    submit = verbs.add_parser("submit", help="store a job; once per kind, change and head")
    _add_submit(submit)
    status = verbs.add_parser("status", help="show the counts of jobs and the newest of them")
    _ = status.add_argument(
        "--state", action="append", default=[], choices=STATES, help="only jobs in this state"
    )
    _ = status.add_argument("--repo", metavar="OWNER/NAME", help="only jobs of this repository")
    _ = status.add_argument(
        "--limit", type=int, default=20, metavar="N", help="jobs to show [%(default)s]"
    )
    job = verbs.add_parser("job", help="show a job")
    _ = job.add_argument(
        "--patch", action="store_true", help="write the patch of a job that edits, for git apply"
    )
    cancel = verbs.add_parser("cancel", help="end a job that has not ended")
    _ = cancel.add_argument(
        "--reason", default="it was cancelled by a person", metavar="TEXT", help="[%(default)s]"
    )
    retry = verbs.add_parser("retry", help="queue a failed or cancelled job again")
    for one in (job, cancel, retry):
        _ = one.add_argument("id", type=int, metavar="ID", help="the number of the job")
    drain = verbs.add_parser("drain", help="have a worker, or all, take no more jobs and end")
    _ = drain.add_argument("slot", type=int, nargs="?", metavar="SLOT", help="one slot [all]")
    slots = verbs.add_parser("slots", help="show the slots and their workers")
    for one in (worker, serve, submit, status, job, cancel, retry, drain, slots):
        _ = one.add_argument(
            "--config", type=Path, metavar="FILE", help="settings of the fleet, as JSON"
        )
        _ = one.add_argument("--json", action="store_true", help="as JSON")
        _ = one.add_argument("--debug", action="store_true", help="show where an error came from")


def _add_submit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _ = add("--repo", required=True, metavar="OWNER/NAME", help="path of the repository")
    _ = add("--head", required=True, metavar="COMMIT", help="commit to work on")
    _ = add("--base", required=True, metavar="REF", help="branch or commit that it goes into")
    _ = add("--number", type=int, default=0, metavar="N", help="number of the change [none]")
    _ = add("--forge", default="github", metavar="NAME", help="name of the forge [%(default)s]")
    _ = add("--kind", choices=("review", "fix", "maintain"), default="review", help="[%(default)s]")
    _ = add("--prompt", default="", metavar="TEXT", help="prompt of kind fix and maintain")
    _ = add("--provider", default="", metavar="NAME", help="provider that the limits count")
    _ = add("--priority", type=int, default=100, metavar="N", help="lower is earlier [%(default)s]")
    _ = add("--budget", type=float, metavar="USD", help="the most that it may cost")
    _ = add("--delay", type=float, default=0.0, metavar="S", help="seconds until it may start [0]")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""

    def work() -> int:
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            message = f"{', '.join(missing)} is not installed; run pip install 'tillerd[fleet]'"
            raise UsageError(message)
        config = read_config(options.config, data=app_paths(environment.variables).data)
        if options.verb in {"worker", "serve"}:
            return _run(options.verb, config, environment)
        return _ask(options, config)

    return code_of("fleet", work, debug=options.debug, as_json=options.json)


def _run(verb: str, config: FleetConfig, environment: Environment) -> int:
    import logging  # noqa: PLC0415 - as below

    import anyio  # noqa: PLC0415 - as below

    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("tiller_server.fleet").setLevel("INFO")
    if verb == "serve":
        from tiller_server.fleet.intake.server import serve  # noqa: PLC0415 - only this command serves

        anyio.run(serve, config, environment.variables)
        return DONE
    from tiller_server.fleet.worker.worker import (  # noqa: PLC0415 - only this command loads the engine
        FleetWorker,
        steps_maker,
    )

    worker = FleetWorker(config, steps_maker(config.steps), env=environment.variables)
    anyio.run(worker.run)
    return DONE


def _ask(options: argparse.Namespace, config: FleetConfig) -> int:
    from tiller_server.fleet import commands  # noqa: PLC0415 - only this command loads the extra

    with commands.opened(config) as fleet:
        if options.verb == "job" and options.patch:
            patch = fleet.patch(options.id)
            _ = sys.stdout.buffer.write(patch)
            sys.stdout.flush()
            return DONE
        match options.verb:
            case "submit":
                answer = fleet.submit(options)
            case "status":
                answer = fleet.status(states=options.state, repo=options.repo, limit=options.limit)
            case "job":
                answer = fleet.job(options.id)
            case "cancel":
                answer = fleet.cancel(options.id, reason=options.reason)
            case "retry":
                answer = fleet.retry(options.id)
            case "drain":
                answer = fleet.drain(options.slot)
            case _:
                answer = fleet.slots()
    _write(answer.body, answer.text, as_json=options.json)
    return DONE


def _write(body: JsonValue, text: str, *, as_json: bool) -> None:
    if as_json:
        speak_json()
        _ = sys.stdout.write(encode(body).decode() + "\n")
    else:
        _ = sys.stdout.write("".join(f"{safe(line)}\n" for line in text.splitlines()))
    sys.stdout.flush()
