"""Statistics and cost of a session, over all of its branches: pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    UsageEntry,
)


class SessionStats(Value, frozen=True, kw_only=True):
    """A session in numbers."""

    user_messages: int = 0
    assistant_messages: int = 0
    tool_results: int = 0
    other_messages: int = 0
    """Words of programs, and commands of the user."""
    tool_calls: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """How often each tool was called, by name."""
    tokens: Usage
    """All that was used, summaries included."""
    cost: Decimal | None
    """In US dollars; None when a part that used tokens has no known price."""
    first_ms: int | None = None
    """Time of the first entry; None: there is none."""
    last_ms: int | None = None
    file: str | None = None
    """None in memory."""

    @property
    def messages(self) -> int:
        """All messages together."""
        counted = (self.user_messages, self.assistant_messages, self.tool_results)
        return sum(counted) + self.other_messages


class ContextUsage(Value, frozen=True, kw_only=True):
    """How full the model's context window is."""

    used: int | None
    """None: unknown, as right after a compaction until the next answer."""
    size: int
    """0: the model does not say."""

    @property
    def percent(self) -> float | None:
        """How much of the window is used; None when either is unknown."""
        if self.used is None or self.size <= 0:
            return None
        return 100 * self.used / self.size


def session_stats(entries: Iterable[AnyEntry], *, file: str | None = None) -> SessionStats:
    """Count the entries of a session, those of branches that were left included."""
    counts: Counter[_Counted] = Counter()
    tool_calls: Counter[str] = Counter()
    tokens = Usage()
    cost: Decimal | None = Decimal(0)
    first_ms: int | None = None
    last_ms: int | None = None
    for entry in entries:
        first_ms = entry.at_ms if first_ms is None else first_ms
        last_ms = entry.at_ms
        if (kind := _counted_as(entry)) is not None:
            counts[kind] += 1
        tool_calls.update(_tool_calls(entry))
        usage = _usage(entry)
        if usage is not None and usage != NOTHING_USED:
            tokens = tokens.plus(usage)
            cost = _added(cost, usage)
    return SessionStats(
        user_messages=counts["user"],
        assistant_messages=counts["assistant"],
        tool_results=counts["toolResult"],
        other_messages=counts["other"],
        tool_calls=dict(tool_calls),
        tokens=tokens,
        cost=cost,
        first_ms=first_ms,
        last_ms=last_ms,
        file=file,
    )


NOTHING_USED = Usage()
_Counted = Literal["user", "assistant", "toolResult", "other"]
_ROLES: Mapping[str, _Counted] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "toolResult",
}


def _counted_as(entry: AnyEntry) -> _Counted | None:
    match entry:
        case MessageEntry(message=UserMessage()):
            return "user"
        case MessageEntry(message=AssistantMessage()):
            return "assistant"
        case MessageEntry(message=ToolResultMessage()):
            return "toolResult"
        case MessageEntry() | CustomMessageEntry() | ColdEntry(kind="custom_message"):
            return "other"
        case ColdEntry(kind="message", role=role):
            return _ROLES.get(role or "", "other")
        case _:
            return None


def _tool_calls(entry: AnyEntry) -> Iterable[str]:
    match entry:
        case MessageEntry(message=AssistantMessage() as said):
            return (call.name for call in said.tool_calls)
        case ColdEntry(tool_calls=names):
            return names
        case _:
            return ()


def _usage(entry: AnyEntry) -> Usage | None:
    match entry:
        case MessageEntry(message=AssistantMessage(usage=usage)):
            return usage
        case (
            CompactionEntry(usage=usage)
            | BranchSummaryEntry(usage=usage)
            | UsageEntry(usage=usage)
            | ColdEntry(usage=usage)
        ):
            return usage
        case _:
            return None


def _added(sum_: Decimal | None, usage: Usage) -> Decimal | None:
    """Add a price; usage with tokens and without a price makes the sum unknown (None)."""
    if sum_ is None or (usage.cost is None and usage.total):
        return None
    return sum_ if usage.cost is None else sum_ + Decimal(str(usage.cost.total))
