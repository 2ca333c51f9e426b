"""State of a session as one line: current activity, its duration, use of the context window, cost."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.events import (
    BashEnded,
    BashStarted,
    CompactionEnded,
    CompactionStarted,
    Event,
    MessageDelta,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    QueueChanged,
    QueueItem,
    RetryStarted,
    RunEnded,
    RunStarted,
    SessionUsage,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolRunning,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReport,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.text import one_line
from agent_core.messages import Text
from tiller_server.cli.terminal.text import call_title

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN_FRAMES: Final = "|/-\\"
KILO: Final = 1000
MINUTE_S: Final = 60
PERCENT: Final = 100
FRAME_S: Final = 0.1
QUEUE_SHOWN: Final = 3
GROWING_CHARS: Final = 48
"""How much of a title that grows is shown: behind it stands the time, at 80 columns too."""
WAITING: Final = "waiting for the model"
ASKING: Final = "waiting for your answer"


class StatusLine(Struct, kw_only=True):
    """Follows the events of a session."""

    now_s: Callable[[], float]
    """A clock that only goes on."""
    frames: str = FRAMES
    _usage: UsageReport | None = None
    _doing: str = ""
    _began_s: float | None = None
    _tools: dict[str, str] = msgspec.field(default_factory=dict)
    _names: dict[str, str] = msgspec.field(default_factory=dict)
    """Names of the tools of the calls that the model writes, by item."""
    _queue: tuple[QueueItem, ...] = ()
    _requests: set[str] = msgspec.field(default_factory=set)
    """Permissions and questions that wait for the answer of a person, by id."""

    @property
    def is_busy(self) -> bool:
        """Return whether something goes on."""
        return self._began_s is not None

    def see(self, event: Event) -> None:
        """Update the status from an event."""
        match event:
            case RunStarted():
                self._begin(WAITING)
            case BashStarted(command=command):
                self._begin(one_line(command))
            case CompactionStarted():
                self._begin("compacting the conversation")
            case RunEnded() | BashEnded() | CompactionEnded(run=None):
                self._began_s = None
                self._tools.clear()
                self._names.clear()
                self._requests.clear()
            case ToolStarted() | ToolInputDelta() | ToolRunning() | ToolEnded():
                self._tool(event)
            case (
                PermissionRequested()
                | QuestionRequested()
                | PermissionResolved()
                | QuestionResolved()
            ):
                self._request(event)
            case SessionUsage(usage=usage):
                self._usage = usage
            case QueueChanged(queue=queue):
                self._queue = queue
            case _:
                self._doing = _doing(event) or self._doing

    def _tool(self, event: ToolStarted | ToolInputDelta | ToolRunning | ToolEnded) -> None:
        match event:
            case ToolStarted(item=item, name=name):
                self._names[item] = name
                self._doing = f"preparing {name}"
            case ToolInputDelta(item=item, partial=partial):
                if partial is not None and (name := self._names.get(item)) is not None:
                    self._doing = f"preparing {_growing_title(name, partial)}"
            case ToolRunning(item=item, title=title):
                _ = self._names.pop(item, None)
                self._tools[item] = one_line(title)
            case ToolEnded(item=item):
                _ = self._names.pop(item, None), self._tools.pop(item, None)
                if not self._tools and not self._names:
                    self._doing = WAITING

    def _request(
        self, event: PermissionRequested | QuestionRequested | PermissionResolved | QuestionResolved
    ) -> None:
        match event:
            case PermissionResolved(request=answered) | QuestionResolved(request=answered):
                self._requests.discard(answered)
            case QuestionRequested(request=asked) if not asked.blocking:
                pass  # the run goes on without the answer
            case PermissionRequested(request=asked) | QuestionRequested(request=asked):
                self._requests.add(asked.request)

    def line(self) -> str:
        """Return the line as it is now."""
        now_s = self.now_s()
        frame = self.frames[int(now_s / FRAME_S) % len(self.frames)]
        doing = ASKING if self._requests else ", ".join(self._tools.values()) or self._doing
        parts = [f"{frame} {doing}"]
        if self._began_s is not None:
            parts.append(seconds(now_s - self._began_s))
        if self._queue:
            parts.append(f"{len(self._queue)} queued")
        if context := self.context():
            parts.append(context)
        return " · ".join(parts)

    def queued(self) -> Iterator[str]:
        """Return a line for each of the first queued prompts, and one that counts the others."""
        for item in self._queue[:QUEUE_SHOWN]:
            text = " ".join(part.text for part in item.content if isinstance(part, Text))
            yield f"  queued: {one_line(text) or 'an attachment'}"
        if len(self._queue) > QUEUE_SHOWN:
            yield f"  and {len(self._queue) - QUEUE_SHOWN} more"

    def context(self) -> str:
        """Return how full the context is and what the session has cost; empty before the first answer."""
        usage = self._usage
        if usage is None:
            return ""
        parts: list[str] = []
        if usage.context_used and usage.context_size:
            share = usage.context_used * PERCENT / usage.context_size
            parts.append(f"context {share:.0f} % of {usage.context_size / KILO:.0f}k")
        cost = usage.tokens.cost
        if cost is not None:
            parts.append(f"${cost.total:.4f}")
        return " · ".join(parts)

    def with_context(self, text: str) -> str:
        """Return a text with how full the context is behind it."""
        usage = self._usage
        if usage is None or not usage.context_used or not usage.context_size:
            return text
        share = usage.context_used * PERCENT / usage.context_size
        return f"{text} · context {share:.0f} % of {usage.context_size / KILO:.0f}k"

    def _begin(self, doing: str) -> None:
        self._doing = doing
        if self._began_s is None:
            self._began_s = self.now_s()


def _growing_title(name: str, arguments: JsonObject) -> str:
    """Return the title of a call that the model writes; of a long one the beginning and the end, which grows."""
    title = call_title(name, arguments)
    if name == "bash":
        title = title.replace("bash", "$", 1)
    half = GROWING_CHARS // 2
    return title if len(title) <= GROWING_CHARS else f"{title[:half]}…{title[-half:]}"


def _doing(event: Event) -> str | None:
    match event:
        case TurnStarted() | TurnEnded():
            return WAITING
        case ThoughtStarted():
            return "thinking"
        case MessageDelta():
            return "writing"
        case RetryStarted():
            return "waiting before the next try"
        case _:
            return None


def frames_for(encoding: str) -> str:
    """Return the pictures of what turns, as far as a stream can show them."""
    try:
        _ = FRAMES.encode(encoding)
    except (UnicodeError, LookupError):
        return PLAIN_FRAMES
    return FRAMES


def seconds(amount_s: float) -> str:
    """Write a duration shortly."""
    whole = int(amount_s)
    if whole < MINUTE_S:
        return f"{whole} s"
    return f"{whole // MINUTE_S} min {whole % MINUTE_S:02} s"
