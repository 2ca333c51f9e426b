"""Daemons for tests: in this process with a clock of ours, or as the real process."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_core.kernel import Clock
from tests.support.lsp.lsp_client import RawClient
from tiller_server.daemon import paths
from tiller_server.daemon.admission.listener import AdmissionPolicy
from tiller_server.daemon.daemon import Daemon
from tiller_server.process.config import ServerConfig

DAEMON = (sys.executable, "-P", "-m", "tiller_server.daemon", "--log-level", "info")
OPEN_S = 15.0


def hello(env: Mapping[str, str], /, **more: Any) -> bytes:
    """Write the hello line of a client of this environment; more members replace the usual ones."""
    usual = {
        "v": 1,
        "token": token_of(env),
        "cwd": "/",
        "pid": os.getpid(),
        "version": "0.1.0",
        "env": dict(env),
    }
    return json.dumps({**usual, **more}).encode() + b"\n"


def token_of(env: Mapping[str, str]) -> str:
    """Give the token that clients show."""
    return Path(paths.token_path(env)).read_text("utf-8").strip()


def folder_of(env: Mapping[str, str], *, mode: int = 0o700) -> Path:
    """Give the daemon's folder, made, with this mode."""
    folder = Path(paths.runtime_folder(env))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)
    return folder


def modes_in(env: Mapping[str, str]) -> dict[str, int]:
    """Give the files of the daemon's folder with their modes."""
    folder = Path(paths.runtime_folder(env))
    return {one.name: stat.S_IMODE(one.lstat().st_mode) for one in folder.iterdir()}


def log_of(env: Mapping[str, str]) -> str:
    """Give what the daemon has logged so far."""
    path = Path(paths.log_path(env))
    return path.read_text("utf-8") if path.exists() else ""


async def knock(env: Mapping[str, str], line: bytes, *, within_s: float = OPEN_S) -> bytes:
    """Connect, say a line, and give all that comes back until the door is closed."""
    reader, writer = await asyncio.open_unix_connection(paths.socket_path(env))
    try:
        with suppress(OSError):
            writer.write(line)
            await writer.drain()
        async with asyncio.timeout(within_s):
            with suppress(ConnectionError):
                return await reader.read()
        return b""
    finally:
        writer.close()


async def editor(env: Mapping[str, str], root: Path | None = None, /, **more: Any) -> RawClient:
    """Connect as an editor of this environment does; introduced when it has a root. To be used as a context."""
    client = await RawClient.connect(Path(paths.socket_path(env)), hello=hello(env, **more))
    if root is not None:
        await client.initialize(root=root)
    return client


@asynccontextmanager
async def daemon_here(
    env: Mapping[str, str],
    *,
    clock: Clock | None = None,
    version: str = "0.1.0",
    checks: Callable[[AdmissionPolicy], AdmissionPolicy] = lambda usual: usual,
) -> AsyncGenerator[tuple[Daemon, "asyncio.Task[bool]"]]:
    """Run a daemon in this process for as long as the block; anybody is let in as far as ancestors go."""
    config = ServerConfig(env=env, home=Path(env.get("HOME", "/")))

    def usual(given: AdmissionPolicy) -> AdmissionPolicy:
        return checks(replace(given, objection=lambda _: None))

    daemon = Daemon(config, clock=clock, version=version, checks=usual)
    opened = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(daemon.run(opened=opened.set))
        waiting = tasks.create_task(opened.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            yield daemon, running
        finally:
            daemon.leave()


class DaemonProcess:
    """The real process of a daemon."""

    def __init__(self, process: asyncio.subprocess.Process, env: Mapping[str, str]) -> None:
        self.process = process
        self.env = env

    @property
    def pid(self) -> int:
        return self.process.pid

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    async def ended(self, *, within_s: float = OPEN_S) -> int:
        """Wait for its end and give its exit code."""
        async with asyncio.timeout(within_s):
            return await self.process.wait()


@asynccontextmanager
async def daemon_process(env: Mapping[str, str]) -> AsyncGenerator[DaemonProcess]:
    """Start the real daemon and wait until it serves; it is ended however the test ends."""
    daemon = await started_process(env)
    try:
        await serves(daemon)
        yield daemon
    finally:
        if daemon.process.returncode is None:
            daemon.terminate()
            try:
                await daemon.ended()
            except TimeoutError:
                daemon.kill()
                await daemon.ended()


async def started_process(env: Mapping[str, str]) -> DaemonProcess:
    """Start the real daemon, and do not wait."""
    process = await asyncio.create_subprocess_exec(
        *DAEMON, env=dict(env), cwd="/", stdin=asyncio.subprocess.DEVNULL, start_new_session=True
    )
    return DaemonProcess(process, env)


async def serves(daemon: DaemonProcess) -> None:
    """Wait until somebody listens at the socket, or the process has ended."""
    path = paths.socket_path(daemon.env)
    async with asyncio.timeout(OPEN_S):
        while daemon.process.returncode is None:
            try:
                _, writer = await asyncio.open_unix_connection(path)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            return
