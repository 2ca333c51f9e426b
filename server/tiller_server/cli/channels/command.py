"""The verbs of `tiller lark` and `tiller slack`: run, status, doctor, login."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio
import msgspec

from agent_core.channels.messaging.port import DeliveryError
from agent_core.channels.messaging.store.database import MessagingDatabase
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.storage.adapters.attachments import Attachments
from tiller_server.channels.bridge.bridge import ChatBridge
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.cli.channels.chat_app import ChatApp, ChatAppName
from tiller_server.cli.channels.platform import (
    ChatPlatform,
    bridge_config,
    environment_without_secrets,
    keyring_name,
    read_chat_app,
    read_secrets,
)
from tiller_server.cli.channels.status_file import ProcessStatus, read_status, write_status
from tiller_server.cli.command_exit import code_of
from tiller_server.cli.doctor.check import Check, checks_json, checks_text
from tiller_server.cli.environment import CommandParsers, Environment
from tiller_server.cli.exit_codes import DONE, FAILED, INTERRUPTED, complain
from tiller_server.cli.shared_session.daemon_connector import daemon_connector
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import moment, safe
from tiller_server.daemon import paths as daemon_paths
from tiller_server.daemon.errors import CannotServe
from tiller_server.daemon.private_dir import private_folder
from tiller_server.process.memory_privacy import forbid_ptrace

LABEL_WIDTH: Final = 12
Verb = Callable[[ChatPlatform, argparse.Namespace, Environment, AppPaths], int]


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the arguments of a platform's command."""
    parser.set_defaults(json=False, verbose=False, debug=False)
    verbs: CommandParsers = parser.add_subparsers(dest="verb", metavar="run|status|doctor|login")
    run = verbs.add_parser("run", help="serve the app until it is ended [the default]")
    status = verbs.add_parser("status", help="show the connection and the messages that wait")
    doctor = verbs.add_parser("doctor", help="check the settings, the secrets and the platform")
    login = verbs.add_parser(
        "login",
        help="store the secrets of the app in the system's keyring",
        epilog=f"example: tiller {name} login",
    )
    for one in (parser, run):
        _ = one.add_argument(
            "--verbose", action="store_true", default=argparse.SUPPRESS, help="log each message"
        )
    for one in (status, doctor):
        _ = one.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="as JSON"
        )
    for one in (parser, run, status, doctor, login):
        _ = one.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where an error came from",
        )


def run_command(
    name: ChatAppName,
    make: Callable[[ChatApp], ChatPlatform],
    options: argparse.Namespace,
    environment: Environment,
) -> int:
    """Run the command of a platform; return the exit code.

    Args:
        name: Name of the command.
        make: Creates the platform from its app in the settings.
        options: The arguments.
        environment: Variables of the process.
    """
    forbid_ptrace(environment.variables)
    if sys.platform == "win32":
        complain(name, "it needs the daemon, and there is none on Windows")
        return FAILED
    verb: Verb = VERBS[options.verb or "run"]

    def work() -> int:
        paths = app_paths(environment.variables)
        app = read_chat_app(name, paths.settings, Path.home())
        return verb(make(app), options, environment, paths)

    return code_of(name, work, debug=options.debug, as_json=options.json)


# ---------------------------------------------------------------------- run


def _run(
    platform: ChatPlatform, options: argparse.Namespace, environment: Environment, paths: AppPaths
) -> int:
    platform.check_installed()
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("tiller_server.channels").setLevel("INFO" if options.verbose else "WARNING")
    env = environment.variables
    config, file = bridge_config(platform), _status_file(platform, env)
    running = read_status(file)
    if running is not None:
        message = f"tiller {platform.name} runs already, as process {running.pid}"
        raise UsageError(message)
    try:
        return asyncio.run(_serve(platform, config, env, paths=paths, file=file))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseExceptionGroup as group:
        # The file of the account cannot be used any more: one sentence says why.
        failed, rest = group.split(TillerError)
        if failed is None or rest is not None:
            raise
        raise _first(failed) from None


def _first(group: BaseExceptionGroup[TillerError]) -> TillerError:
    error: BaseExceptionGroup[TillerError] | TillerError = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _serve(
    platform: ChatPlatform,
    config: BridgeConfig,
    env: Mapping[str, str],
    *,
    paths: AppPaths,
    file: Path,
) -> int:
    clock, redactor = SystemClock(), Redactor()
    secrets = await read_secrets(platform, env)
    redactor.hold(*secrets.values())
    redactor.hold_environment(env)
    async with platform.open_channel(secrets, clock) as channel:
        database = MessagingDatabase(
            paths.channels / f"{channel.name}-{channel.account}.sqlite3",
            channel=channel.name,
            account=channel.account,
        )
        bridge = ChatBridge(
            channel,
            daemon_connector(
                environment_without_secrets(platform, env), config.workspaces[0].folder
            ),
            config,
            database=database,
            open_attachments=lambda: _attachments(paths, env),
            cleaner=redactor,
            clock=clock,
        )
        _ = sys.stdout.write(f"{platform.title} app {channel.account} is served. Ctrl-C ends it.\n")
        sys.stdout.flush()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(write_status, file, bridge, clock)
                await bridge.run()
        finally:
            database.close()
    return DONE


def _attachments(paths: AppPaths, env: Mapping[str, str]) -> Attachments:
    from agent_core.assembly.storage.attachments import (  # noqa: PLC0415 - loads the assembly of the agent, for the first file
        UserAttachments,
    )

    return UserAttachments(paths, env).now()


# ---------------------------------------------------------------------- status


def _status(
    platform: ChatPlatform, options: argparse.Namespace, environment: Environment, paths: AppPaths
) -> int:
    _ = paths
    running = read_status(_status_file(platform, environment.variables))
    if options.json:
        speak_json()
        body = b"null" if running is None else msgspec.json.encode(running)
        _ = sys.stdout.write(f"{body.decode()}\n")
    else:
        _ = sys.stdout.write(_status_text(platform, running))
    return DONE if running is not None and running.status.is_healthy else FAILED


def _status_text(platform: ChatPlatform, running: ProcessStatus | None) -> str:
    if running is None:
        return f"tiller {platform.name} does not run\n"
    status = running.status
    rows = [
        ("process", str(running.pid)),
        ("app", status.account),
        ("connection", f"{status.connection}{f': {status.reason}' if status.reason else ''}"),
        ("last event", moment(status.last_event_ms) if status.last_event_ms else "none"),
        ("received", _counts(status.inbox)),
        ("to send", _counts(status.outbox)),
        ("chats", str(status.bindings)),
        *(
            (f"dead ({one.box})", f"{moment(one.at_ms)} {one.chat}: {one.reason}")
            for one in status.dead
        ),
    ]
    return "".join(f"{label:<{LABEL_WIDTH}}{safe(text)}\n" for label, text in rows)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none"


# ---------------------------------------------------------------------- doctor and login


def _doctor(
    platform: ChatPlatform, options: argparse.Namespace, environment: Environment, paths: AppPaths
) -> int:
    _ = paths
    checks = asyncio.run(_checks(platform, environment.variables))
    if options.json:
        speak_json()
    _ = sys.stdout.write(checks_json(checks) if options.json else checks_text(checks))
    return FAILED if any(check.status == "missing" for check in checks) else DONE


async def _checks(platform: ChatPlatform, env: Mapping[str, str]) -> list[Check]:
    checks = platform.app.checks
    try:
        platform.check_installed()
        secrets = await read_secrets(platform, env)
    except UsageError as error:
        return [*checks, Check(name="app", status="missing", found=str(error))]
    clock = SystemClock()
    try:
        async with platform.open_channel(secrets, clock) as channel:
            problem = await platform.probe(secrets, clock)
            found = problem or f"{platform.title} accepts the app {channel.account}"
            return [*checks, Check(name="app", status="missing" if problem else "ok", found=found)]
    except DeliveryError as error:
        return [*checks, Check(name="app", status="missing", found=str(error))]


def _login(
    platform: ChatPlatform, options: argparse.Namespace, environment: Environment, paths: AppPaths
) -> int:
    from agent_core.providers.auth.store import keep_in_keyring  # noqa: PLC0415 - only for this
    from tiller_server.cli.sign_in import read_key  # noqa: PLC0415 - only for this

    _ = options, environment, paths
    if platform.app.missing:
        message = (
            f"{platform.app.missing} is not set; run tiller config set {platform.app.missing} VALUE"
        )
        raise UsageError(message)
    for secret in platform.secrets:
        asked = f"{secret.name.capitalize()} of the {platform.title} app (hidden): "
        value = read_key(asked, f"example: tiller {platform.name} login")
        asyncio.run(keep_in_keyring(keyring_name(platform, secret), value))
        _ = sys.stdout.write(f"Stored the {secret.name} in the system's keyring\n")
    return DONE


def _status_file(platform: ChatPlatform, env: Mapping[str, str]) -> Path:
    try:
        return private_folder(daemon_paths.runtime_folder(env)) / f"{platform.name}.status.json"
    except (CannotServe, ValueError) as error:
        raise UsageError(str(error)) from error


VERBS: Final[Mapping[str, Verb]] = {
    "run": _run,
    "status": _status,
    "doctor": _doctor,
    "login": _login,
}
