"""Serves one editor from this very process, over standard input and output."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from uuid import uuid4

from lsprotocol import types
from msgspec.structs import replace

from agent_core.kernel import SystemClock
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream, stdio_streams
from tiller_server.process.config import from_environment
from tiller_server.process.gc_tuning import IncrementalGc
from tiller_server.process.logs import hide_early, log_crashes
from tiller_server.process.memory_privacy import forbid_ptrace

TERMINATED: Final = 143
SWITCH_S: Final = 0.0005
"""How long the thread that writes a session waits for a busy loop at each call into the system; Python's 5 ms add up."""


def log_to(log_file: str | None, *, level: str) -> None:
    """Log to a file, or to standard error.

    Raises:
        OSError: The file cannot be written.
    """
    if log_file is not None:
        # A log is for its user's eyes; one that is there already keeps the mode it was given.
        os.close(os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    logging.basicConfig(
        filename=log_file,
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    hide_early(lambda: from_environment().env)
    log_crashes()


def serve(*, first_bytes: bytes = b"", tell: str | None = None) -> int:
    """Serve the editor until it disconnects; return the exit code.

    Args:
        first_bytes: Bytes already read from the editor.
        tell: Warning to show to the editor's user; None: no warning.
    """
    sys.setswitchinterval(SWITCH_S)
    return asyncio.run(_serve(partial(_serve_lsp, tell), first_bytes))


def serve_acp(*, first_bytes: bytes = b"", newest: int = 1) -> int:
    """Serve a client of the Agent Client Protocol until it disconnects; return the exit code.

    Args:
        first_bytes: Bytes already read from the client.
        newest: Newest version of the protocol that is served.
    """
    sys.setswitchinterval(SWITCH_S)
    return asyncio.run(_serve(partial(_serve_acp, from_environment().env, newest), first_bytes))


async def _serve(
    protocol: Callable[[Runtime, InputStream, Sink], Awaitable[int]], first_bytes: bytes
) -> int:
    reader, sink = await stdio_streams()
    config = from_environment()
    # Beside the first answer: it costs some milliseconds, and no tool runs before that.
    hiding = asyncio.get_running_loop().run_in_executor(None, forbid_ptrace, config.env)
    looks = IncrementalGc()
    try:
        async with (
            Runtime(config, on_loaded=looks.begin) as runtime,
            _beside(looks.keep_tidy(lambda: runtime.working() > 0)),
        ):
            return await protocol(runtime, _Continued(first_bytes, reader), sink)
    finally:
        await hiding


async def _serve_lsp(tell: str | None, runtime: Runtime, reader: InputStream, sink: Sink) -> int:
    app = App(runtime)
    if tell is not None:
        _tell_when_answered(app, tell)
    _end_on_sigterm(lambda: app.connection.close(TERMINATED))
    return await app.connection.serve(reader, sink, parent="watch")


async def _serve_acp(
    env: Mapping[str, str], newest: int, runtime: Runtime, reader: InputStream, sink: Sink
) -> int:
    from tiller_server.acp.connection import AcpConnection  # noqa: PLC0415 - editors that speak LSP do not wait for it
    from tiller_server.agent_client.in_process import attached  # noqa: PLC0415 - see above

    connection = AcpConnection(
        reader,
        sink,
        lambda handlers, servers: attached(
            App(runtime, origin=replace(runtime.origin, mcp_servers=servers)), handlers=handlers
        ),
        client_id=uuid4().hex,
        env=env,
        clock=SystemClock(),
        newest=newest,
    )
    code = 0

    def end() -> None:
        nonlocal code
        code = TERMINATED
        connection.close()

    _end_on_sigterm(end)
    await connection.serve()
    return code


@asynccontextmanager
async def _beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work)
        yield
        _ = task.cancel()


class _Continued:
    """A reader whose beginning somebody else has read."""

    def __init__(self, first_bytes: bytes, rest: InputStream) -> None:
        self._first_bytes = first_bytes
        self._rest = rest

    async def read(self, n: int, /) -> bytes:
        if not self._first_bytes:
            return await self._rest.read(n)
        given, self._first_bytes = self._first_bytes[:n], self._first_bytes[n:]
        return given


def _tell_when_answered(app: App, text: str) -> None:
    params = {"type": types.MessageType.Warning.value, "message": text}

    def tell(_: types.InitializeResult) -> None:
        # The answer itself goes out first.
        asyncio.get_running_loop().call_soon(
            app.connection.notify, types.WINDOW_SHOW_MESSAGE, params
        )

    app.connection.amend_capabilities(tell)


def _end_on_sigterm(close: Callable[[], None]) -> None:
    """Settle as if the client had left: a run that is only killed leaves its processes behind."""
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, close)
