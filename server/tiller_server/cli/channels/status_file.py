"""The file in which a process of a chat platform writes its state, for `status` commands."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import msgspec

from agent_core.kernel import Clock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.private_file import replace_text
from agent_core.kernel.values import Value, threadsafe
from tiller_server.channels.bridge.bridge import BridgeStatus, ChatBridge
from tiller_server.process.liveness import is_alive

EVERY_S: Final = 1.0


class ProcessStatus(Value, frozen=True, kw_only=True):
    """State of a process."""

    pid: int
    at_ms: int
    status: BridgeStatus


async def write_status(file: Path, bridge: ChatBridge, clock: Clock) -> None:
    """Write the state of a bridge every second, until cancelled; the file is removed at the end."""
    try:
        while True:
            with suppress(StorageUnavailable):  # not open yet
                state = ProcessStatus(
                    pid=os.getpid(), at_ms=clock.now_ms(), status=await bridge.status()
                )
                await anyio.to_thread.run_sync(
                    replace_text, file, msgspec.json.encode(state).decode()
                )
            await clock.sleep(EVERY_S)
    finally:
        with suppress(OSError):
            file.unlink()  # noqa: ASYNC240 - at the end of the process


def read_status(file: Path) -> ProcessStatus | None:
    """Return the state of the process that runs; None: none does. Blocking."""
    try:
        state = msgspec.json.decode(file.read_bytes(), type=threadsafe(ProcessStatus))
    except (OSError, msgspec.DecodeError):
        return None
    return state if is_alive(state.pid) else None
