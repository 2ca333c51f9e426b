"""Notices that the process which started us is gone."""

import asyncio
from typing import Final

from tiller_server.process.liveness import can_watch, is_alive

__all__ = ["can_watch", "wait_until_gone"]

POLL_S: Final = 3.0


async def wait_until_gone(pid: int, *, every_s: float = POLL_S) -> None:
    """Return some seconds after the process has ended."""
    while is_alive(pid):  # noqa: ASYNC110 - no portable system tells when a stranger ends
        await asyncio.sleep(every_s)
