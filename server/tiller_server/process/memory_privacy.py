"""Keeps what is in our memory and environment from other programs of the same user."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

SET_DUMPABLE: Final = 4
SWITCH: Final = "TILLER_ALLOW_DEBUGGER"
"""Set to `1` by its user, this environment variable leaves the process attachable."""
ATTACHABLE: Final = (
    f"{SWITCH}=1: other programs of this user can read the memory of this process, keys included, "
    "and attach a debugger to it; unset the variable and restart Tiller to protect it again"
)


def forbid_ptrace(env: Mapping[str, str]) -> None:
    """Prevent other processes of the user from reading our memory or environment and from attaching. Linux only.

    Args:
        env: The environment of the process as it was started. Settings and workspaces have no influence.
    """
    if allows_debugger(env):
        _warn()
        return
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - for Linux alone

        _ = ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)


def allows_debugger(env: Mapping[str, str]) -> bool:
    """Return whether the user switched the protection off."""
    return env.get(SWITCH) == "1"


def _warn() -> None:
    import logging  # noqa: PLC0415 - costs an editor's start, which seldom needs it

    log = logging.getLogger(__name__)
    # Commands log errors only, and the level of a log must not conceal this.
    log.setLevel(logging.WARNING)
    log.warning(ATTACHABLE)
