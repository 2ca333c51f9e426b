"""How long something that an extension was handed is good for."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from agent_core.kernel.errors import ContextStale, Unsupported

_INSIDE: Final[ContextVar[str]] = ContextVar("tiller_extension_inside", default="")
"""Description of the hook or tool of an extension that runs in this context and that a run waits for; empty: none."""


class Lifetime:
    """One loading of an extension. When it is over, everything that was handed out says so."""

    def __init__(self, extension: str) -> None:
        self._extension = extension
        self._why = ""

    @property
    def is_over(self) -> bool:
        """Whether what was handed out is stale."""
        return bool(self._why)

    def end(self, why: str) -> None:
        """End it; the first reason stays."""
        self._why = self._why or why

    def check(self) -> None:
        """Go on only while it lasts.

        Raises:
            ContextStale: It is over; the text says why and what to use.
        """
        if self._why:
            message = (
                f"this context of extension {self._extension!r} is stale: {self._why}; "
                "use the one that the handler is called with, and keep none"
            )
            raise ContextStale(message)


@contextmanager
def inside(what: str) -> Generator[None]:
    """Report that a hook or tool of an extension is being run, by whose end a run is held up."""
    token = _INSIDE.set(what)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def check_not_inside(asked: str) -> None:
    """Check that a call which waits for the session is not made where the session waits for the caller.

    Raises:
        Unsupported: The call is made inside a hook or tool of an extension: it would wait for itself.
    """
    if what := _INSIDE.get():
        message = f"{asked} inside {what} would wait for itself; do it in a command"
        raise Unsupported(message)
