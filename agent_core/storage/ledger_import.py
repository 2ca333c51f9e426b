"""Rows of the ledger from session files that are older than it."""

from collections.abc import Iterator, Mapping

from agent_core.events.values import CallPurpose
from agent_core.messages import AssistantMessage, Usage
from agent_core.storage.ledger import CallRow, day_of, picodollars
from agent_core.storage.port import StoredSession
from agent_core.transcript.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    MessageEntry,
    UsageEntry,
)

_PURPOSES: Mapping[str, CallPurpose] = {"title": "title", "task": "task", "extension": "extension"}
"""By the kind of a usage entry; any other is a summary."""


def imported_rows(stored: StoredSession, *, before_ms: int) -> Iterator[CallRow]:
    """Yield a row for each usage that a session file has from before a time.

    A task is one row of the session that gave it. Copies of an entry in forked sessions have one id.
    """
    model = ("", "")
    for entry in stored.entries:
        match entry:
            case MessageEntry(message=AssistantMessage() as message):
                usage, purpose = message.usage, "main"
                model = (message.provider, message.model)
                used_by = model
            case UsageEntry(usage=usage, kind=kind, provider=provider, model=name):
                purpose, used_by = _PURPOSES.get(kind, "compaction"), (provider, name)
            case (
                CompactionEntry(usage=Usage() as usage) | BranchSummaryEntry(usage=Usage() as usage)
            ):
                purpose, used_by = "compaction", model
            case _:
                continue
        if entry.at_ms < before_ms and (usage.total or usage.cost is not None):
            yield CallRow(
                id=f"imported-{entry.id}-{entry.at_ms}",
                at_ms=entry.at_ms,
                day=day_of(entry.at_ms),
                session=stored.header.id,
                root=stored.header.id,
                run=None,
                turn=None,
                folder=stored.header.cwd,
                purpose=purpose,
                provider=used_by[0],
                model=used_by[1],
                input=usage.input,
                output=usage.output,
                cache_read=usage.cache_read,
                cache_write=usage.cache_write,
                reasoning=usage.reasoning,
                price=None,
                cost=None if usage.cost is None else picodollars(usage.cost.total),
                reserved=None,
                status="completed",
                origin="imported",
            )
