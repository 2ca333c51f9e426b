"""Marked points at which a test ends the process, as the loss of the machine does."""

import os
import signal
from functools import cache
from typing import Final

VARIABLE: Final = "TILLER_FLEET_FAULT"
"""Names a point and its passage, `review.before:2`. Not set: nothing happens."""


class FaultSwitch:
    """Counts the passages of the point that the environment names, and kills the process at the one it names."""

    def __init__(self, setting: str) -> None:
        """Read a setting, `point:passage`; empty: no point is marked."""
        self._point, _, passage = setting.partition(":")
        self._left = int(passage or "1") if self._point else 0

    def pass_point(self, point: str) -> None:
        """Pass a point."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


@cache
def _switch() -> FaultSwitch:
    return FaultSwitch(os.environ.get(VARIABLE, ""))  # noqa: TID251 - of tests alone


def pass_point(point: str) -> None:
    """Pass a marked point; without effect outside of tests."""
    _switch().pass_point(point)
