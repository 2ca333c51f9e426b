"""Exit codes of `tiller`, and how its errors are told."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from agent_core.events import RunEnded, RunResult
from agent_core.kernel.errors import SessionNotFound, TillerError, UsageError
from agent_core.kernel.text import shown

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
FINDINGS: Final = 3
BUDGET: Final = 4
REFUSED: Final = 5
INTERRUPTED: Final = 130
TERMINATED: Final = 143

BY_STATUS: Final[Mapping[str, int]] = {
    "completed": DONE,
    "failed": FAILED,
    "interrupted": FAILED,
    "budget": BUDGET,
    "refused": REFUSED,
    "cancelled": INTERRUPTED,
}


class StoppedEarly(TillerError):
    """A signal came before there was anything to show."""

    def __init__(self, code: int | None) -> None:
        super().__init__("it was stopped before there was anything to show")
        self.code = code or INTERRUPTED
        """As the signal asks for."""


def code_of_run(result: RunResult | RunEnded) -> int:
    """Return the exit code of a run; a missing or wrong key is a matter of usage."""
    if result.error is not None and result.error.kind == "AuthRequired":
        return USAGE
    return BY_STATUS.get(result.status, FAILED)


def code_of_error(error: TillerError) -> int:
    """Return the exit code of an error that kept a run from starting."""
    if isinstance(error, StoppedEarly):
        return error.code
    return USAGE if isinstance(error, UsageError | SessionNotFound) else FAILED


def complain(command: str, text: str) -> None:
    """Report an error as one sentence on standard error."""
    with suppress(OSError):  # standard error may be what is broken
        _ = sys.stderr.write(f"tiller {command}: {shown(text)}\n")
        sys.stderr.flush()
