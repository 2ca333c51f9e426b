"""Whose change of a file is under way, for adapters that pass it on: to an editor, say, that names it to its user."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from agent_core.kernel import RunId, SessionId, ToolCallId
from agent_core.kernel.values import Value


class EditOrigin(Value, frozen=True, kw_only=True):
    """Where an edit comes from."""

    edit: str
    """The id that its events carry."""
    run: RunId | None
    call: ToolCallId | None
    session: SessionId | None = None


# A write is the same wherever it comes from, so its signature does not say; each task sees its own value.
_ORIGIN: Final[ContextVar[EditOrigin | None]] = ContextVar("edit_origin", default=None)


def edit_origin() -> EditOrigin | None:
    """Return the origin of the change that the current task makes; None: no origin is set."""
    return _ORIGIN.get()


@contextmanager
def changing(origin: EditOrigin) -> Generator[None]:
    """Set the origin of the changes that the current task makes in the block."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)
