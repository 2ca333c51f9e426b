"""Whether another process still runs. Imports next to nothing."""

import os
import sys


def can_watch(pid: int) -> bool:
    """Whether waiting for the end of this process makes sense.

    A pid that names nothing belongs to another machine or container, or is no pid at all.
    """
    # On Windows os.kill(pid, 0) is no question but a Ctrl-C.
    return pid > 0 and sys.platform != "win32" and is_alive(pid)


def is_alive(pid: int) -> bool:
    """Return whether there is such a process; one of another user counts."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
