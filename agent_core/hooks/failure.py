"""Description of a failed hook: its owner, the hook point, and the location of the failure in its code."""

import traceback
from collections.abc import Coroutine
from inspect import iscoroutine
from pathlib import Path
from types import FrameType, TracebackType

from agent_core.kernel.values import Value

OWN_FOLDER = str(Path(__file__).parent)


class HookFailure(Value, frozen=True, kw_only=True):
    """A hook crashed, took too long or gave what it may not."""

    owner: str
    point: str
    error: str
    exception: BaseException
    stood: str | None = None
    """Where it waited when its time was over."""

    @property
    def stack(self) -> str:
        """Where in the hook's code it happened, as Python writes it."""
        if self.stood is not None:
            return f"{self.stood}{self.error}\n"
        foreign = _foreign(self.exception.__traceback__)
        return "".join(traceback.format_exception(type(self.exception), self.exception, foreign))


def wait_stack(steps: Coroutine[object, None, object]) -> str | None:
    """Return where a coroutine waits, outermost frame first, without Tiller's own frames; None: unknown."""
    lines: list[traceback.FrameSummary] = []
    inner: object = steps
    while iscoroutine(inner):
        frame: FrameType | None = inner.cr_frame
        if frame is not None and not _is_ours(frame):
            lines.append(_line(frame))
        inner = inner.cr_await
    return "".join(traceback.StackSummary.from_list(lines).format()) if lines else None


def _line(frame: FrameType) -> traceback.FrameSummary:
    code = frame.f_code
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)


def _foreign(where: TracebackType | None) -> TracebackType | None:
    """Leave out our own part of a traceback: the way to the hook says nothing about it."""
    while where is not None and _is_ours(where.tb_frame):
        where = where.tb_next
    return where


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(OWN_FOLDER)
