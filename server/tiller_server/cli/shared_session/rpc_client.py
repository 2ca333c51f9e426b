"""Serves one client of `tiller rpc`: through the daemon, which is started where there is none, or in this process."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonValue, SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.resources.paths import app_paths
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.in_process import attached
from tiller_server.cli.environment import Environment
from tiller_server.cli.session_options import budgets_of
from tiller_server.cli.shared_session.daemon_client import connected
from tiller_server.lsp.transport.stdio import stdio_streams
from tiller_server.rpc.server import RpcOptions, RpcServer

SIGNALS: Final[Mapping[str, int]] = {"SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130}
"""Signals that end the process, and their exit codes: 128 and the number of the signal."""


def serve(options: argparse.Namespace, environment: Environment) -> int:
    """Serve the client until it leaves; return the exit code.

    Raises:
        TillerError: An option cannot be used, the session cannot be opened, or the daemon has gone.
    """
    chosen = _options(options, environment)
    return asyncio.run(_serve(chosen, environment.variables, in_process=options.in_process))


def _options(options: argparse.Namespace, environment: Environment) -> RpcOptions:
    if options.extension:
        message = "tiller rpc cannot load --extension: put it into the folder .tiller/extensions"
        raise UsageError(message)
    if options.fork:
        message = "tiller rpc has no --fork: send the command clone"
        raise UsageError(message)
    model = options.model
    if options.provider:
        if not model:
            message = "--provider needs --model ID"
            raise UsageError(message)
        model = f"{options.provider}/{model.removeprefix(f'{options.provider}/')}"
    config = {"model": model, "thinking": options.thinking, "tools": _tools(options.tools)}
    agent: dict[str, JsonValue] = {}
    if options.permission:
        agent["permission"] = {"mode": options.permission}
    if budgets := budgets_of(options):
        agent["budgets"] = budgets
    return RpcOptions(
        root=Path(options.workspace).absolute(),
        folders=tuple(options.add_dir),
        sessions=app_paths(environment.variables).sessions,
        compat=options.compat,
        session=options.session or ("latest" if options.latest else "new"),
        config={name: value for name, value in config.items() if value is not None},
        title=options.name,
        is_kept=not options.no_session,
        is_trusted=options.trust,
        agent=agent,
    )


def _tools(chosen: str | None) -> JsonValue:
    """Return a preset, or a list of names: pi separates them by commas, Tiller by blanks too."""
    names = (chosen or "").replace(",", " ").split()
    return names if len(names) > 1 else chosen


async def _has_daemon(env: Mapping[str, str]) -> bool:
    """Return whether a daemon answers, after one was started where there was none."""
    if sys.platform == "win32":
        return False
    from tiller_server.daemon.control_client import start_and_wait  # noqa: PLC0415 - needs sockets that Windows lacks
    from tiller_server.daemon.shim.connection import Unreachable  # noqa: PLC0415 - as above

    try:
        await start_and_wait(env, SystemClock())
    except Unreachable:
        return False
    return True


async def _serve(options: RpcOptions, env: Mapping[str, str], *, in_process: bool) -> int:
    reader, sink = await stdio_streams()
    ending = Ending()
    if not in_process and await _has_daemon(env):
        async with connected(env, options.root) as client:
            if client is not None:
                server = RpcServer(client, sink, options, clock=SystemClock())
                ending.watch(server)
                try:
                    await server.serve(reader)
                except AgentRefused:
                    if server.has_begun:
                        raise
                else:
                    return ending.code
    from tiller_server.lsp.app import App  # noqa: PLC0415 - only without a daemon
    from tiller_server.lsp.runtime import Runtime  # noqa: PLC0415 - as above
    from tiller_server.process.config import ServerConfig  # noqa: PLC0415 - as above

    config = ServerConfig(env=dict(env), home=Path(env.get("HOME") or Path.home()))
    failure: TillerError | None = None
    async with Runtime(config) as runtime, attached(App(runtime)) as client:
        server = RpcServer(client, sink, options, clock=SystemClock())
        ending.watch(server)
        try:
            await server.serve(reader)
        except TillerError as error:
            failure = error  # raised below, outside of the groups that would wrap it
    if failure is not None:
        raise failure
    return ending.code


class Ending:
    """How a signal has asked for the end."""

    def __init__(self) -> None:
        self.code = 0

    def watch(self, server: RpcServer) -> None:
        """End the server at a signal; a second one ends the process at once."""
        if sys.platform == "win32":
            return
        loop = asyncio.get_running_loop()

        def stop(code: int) -> None:
            if self.code:
                os._exit(code)
            self.code = code
            server.stop()

        for name, code in SIGNALS.items():
            loop.add_signal_handler(getattr(signal, name), stop, code)
