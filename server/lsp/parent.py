"""Notices that the process which started us is gone."""

import asyncio
import os
import sys
from typing import Final

POLL_S: Final = 3.0


def can_watch(pid: int) -> bool:
    """Whether waiting for the end of this process makes sense.

    A pid that names nothing belongs to another machine or container, or is no pid at all.
    """
    # On Windows os.kill(pid, 0) is no question but a Ctrl-C.
    return pid > 0 and sys.platform != "win32" and _is_alive(pid)


async def wait_until_gone(pid: int, *, every_s: float = POLL_S) -> None:
    """Return some seconds after the process has ended."""
    while _is_alive(pid):  # noqa: ASYNC110 - no portable system tells when a stranger ends
        await asyncio.sleep(every_s)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
