"""Keeps what is in our memory and environment from other programs of the same user."""

import sys
from contextlib import suppress
from typing import Final

SET_DUMPABLE: Final = 4


def hide() -> None:
    """Let no other process of the user read our memory or environment, nor attach to us; where the system can."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - for Linux alone

        _ = ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
