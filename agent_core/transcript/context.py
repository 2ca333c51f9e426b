"""From a path of entries to what the model is shown: pure."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec.structs import replace

from agent_core.kernel import EntryId, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_core.messages.codec import decode_assistant_content, decode_user_content
from agent_core.transcript.codec import StoredEntry
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    StoredMessage,
    ThinkingChange,
    UnknownEntry,
    UsageEntry,
)
from agent_core.transcript.tree import HeldEntry, Transcript, newest_first, records_of


class ModelChoice(Value, frozen=True, kw_only=True):
    """The model and the thinking level of the entries on a path."""

    model: str | None
    """`provider/id` of the last model set or heard; None when there was none."""
    thinking: str | None
    """The level set last, as it was written; None when it was never set."""


class ModelContext(ModelChoice, frozen=True, kw_only=True):
    """Result of the entries on a path."""

    messages: tuple[Message, ...]


class ProjectedEntry(Value, frozen=True, kw_only=True):
    """An entry beside the message that the model sees in its place; None: it sees nothing."""

    entry: AnyEntry
    message: Message | None


def build_context(path: Sequence[AnyEntry]) -> ModelContext:
    """Build what the model is shown from the entries between the root and the leaf.

    The latest compaction on the path hides what it summarised; model and thinking level come from the whole path.
    """
    models = (model for model in map(_model_of, reversed(path)) if model is not None)
    levels = (entry.level for entry in reversed(path) if isinstance(entry, ThinkingChange))
    return ModelContext(
        messages=context_messages(path), model=next(models, None), thinking=next(levels, None)
    )


def last_choice(transcript: Transcript) -> ModelChoice:
    """Return the choices of `build_context` for the leaf of a transcript, decoding only its newest messages."""
    models = (model for model in map(_model_of, newest_first(transcript)) if model is not None)
    records = reversed(records_of(transcript.stored_path))
    levels = (entry.level for entry in records if isinstance(entry, ThinkingChange))
    return ModelChoice(model=next(models, None), thinking=next(levels, None))


def context_messages(path: Sequence[AnyEntry]) -> tuple[Message, ...]:
    """Return the messages of `build_context` alone, for those who know the rest: every request begins with this."""
    return tuple([message for _, message in _shown(context_entries(path)) if message is not None])


class LeafContext:
    """The messages of `context_messages` for the leaf of a transcript, built once and then extended.

    They depend on the path to the leaf alone. The transcript makes a new list of it when it moves or swaps entries, and
    appends to the same list what it adds; an added compaction or context edit changes earlier messages.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._path: Sequence[StoredEntry] = ()
        self._count = 0
        """How many entries of the path the messages are of."""
        self._has_edits = False
        self._messages: tuple[Message, ...] = ()

    def messages(self) -> tuple[Message, ...]:
        """Return the messages of the current branch as the model should see them."""
        path = self._transcript.stored_path
        if path is self._path and len(path) == self._count:
            return self._messages
        entries = self._transcript.path()
        added = entries[self._count :] if path is self._path else entries
        self._has_edits = any(isinstance(entry, ContextEditEntry) for entry in added) or (
            path is self._path and self._has_edits
        )
        changes_earlier = self._has_edits or latest_compaction(added) is not None
        if path is self._path and not changes_earlier:
            self._messages += context_messages(added)
        else:
            self._messages = context_messages(entries)
        self._path, self._count = path, len(entries)
        return self._messages


def project(path: Sequence[AnyEntry]) -> tuple[ProjectedEntry, ...]:
    """Return the entries that the latest compaction leaves, in the model's order, with their messages."""
    shown = _shown(context_entries(path))
    return tuple([ProjectedEntry(entry=entry, message=message) for entry, message in shown])


def _model_of(entry: AnyEntry) -> str | None:
    """Return the model that an entry sets or was heard of."""
    match entry:
        case ModelChange():
            return f"{entry.provider}/{entry.model}"
        case MessageEntry(message=AssistantMessage() as said) if said.provider and said.model:
            return f"{said.provider}/{said.model}"
        case ColdEntry():
            return entry.model
        case _:
            return None


def _shown(chosen: Sequence[AnyEntry]) -> list[tuple[AnyEntry, Message | None]]:
    edits = {entry.target: entry for entry in chosen if isinstance(entry, ContextEditEntry)}
    latest = chosen[0] if chosen else None
    shown: list[tuple[AnyEntry, Message | None]] = []
    for entry in chosen:
        if type(entry) is MessageEntry and not edits and type(entry.message) is not BashMessage:
            # Nearly all entries, and each request walks them all.
            shown.append((entry, entry.message))
            continue
        # An older compaction inside the part that was kept says nothing that the latest does not.
        hidden = isinstance(entry, CompactionEntry) and entry is not latest
        message = None if hidden else _message_of(entry)
        if edits and entry.id in edits:
            message = _edited(message, edits[entry.id])
        shown.append((entry, message))
    return shown


def context_entries(path: Sequence[HeldEntry]) -> Sequence[HeldEntry]:
    """Return the entries of a path that the model's context is made of: those must have their bodies.

    They are the latest compaction, what it kept, and all that followed; without a compaction the whole path.
    """
    place = latest_compaction(path)
    if place is None:
        return path
    compaction = path[place]
    kept = place
    match compaction:
        case CompactionEntry(first_kept=first) | ColdEntry(first_kept=str(first)):
            kept = _place_of(first, path, before=place)
        case _:
            pass
    return [compaction, *path[kept:place], *path[place + 1 :]]


def latest_compaction(path: Sequence[StoredEntry]) -> int | None:
    """Return where on the path the latest compaction stands."""
    for place in range(len(path) - 1, -1, -1):
        entry = path[place]
        if isinstance(entry, CompactionEntry) or (
            isinstance(entry, ColdEntry) and entry.kind == "compaction"
        ):
            return place
    return None


def _place_of(entry_id: EntryId, path: Sequence[StoredEntry], *, before: int) -> int:
    """Find an entry, backwards: the kept part begins near the end; `before` when the entry is not there."""
    places = range(before - 1, -1, -1)
    return next((place for place in places if path[place].id == entry_id), before)


def _message_of(entry: AnyEntry) -> Message | None:
    match entry:
        case MessageEntry(message=message):
            excluded = isinstance(message, BashMessage) and message.exclude_from_context
            return None if excluded else message
        case CustomMessageEntry():
            return CustomMessage(
                custom_type=entry.custom_type,
                content=entry.content,
                display=entry.display,
                details=entry.details,
                at_ms=entry.at_ms,
            )
        case BranchSummaryEntry() if entry.summary.strip():
            return BranchSummaryMessage(
                summary=entry.summary, from_id=entry.from_id, at_ms=entry.at_ms
            )
        case CompactionEntry():
            return CompactionSummaryMessage(
                summary=entry.summary, tokens_before=entry.tokens_before, at_ms=entry.at_ms
            )
        case _:
            return _silent(entry)


def _silent(
    entry: BranchSummaryEntry
    | ModelChange
    | ThinkingChange
    | CustomEntry
    | LabelEntry
    | SessionNameEntry
    | ContextEditEntry
    | UsageEntry
    | UnknownEntry
    | ColdEntry,
) -> None:
    """Name every entry that the model never sees, so that a new type must be thought about."""
    match entry:
        case BranchSummaryEntry() | ModelChange() | ThinkingChange() | CustomEntry():
            return
        case LabelEntry() | SessionNameEntry() | ContextEditEntry() | UsageEntry():
            return
        case UnknownEntry() | ColdEntry():
            return
        case _:
            assert_never(entry)


def _edited(message: Message | None, edit: ContextEditEntry) -> Message | None:
    if message is None:
        return None
    if isinstance(message, StoredMessage | CustomMessage) and not isinstance(message, BashMessage):
        return _replaced(message, edit.replacement)
    return message


def _replaced(
    message: UserMessage | AssistantMessage | ToolResultMessage | CustomMessage,
    replacement: JsonValue,
) -> Message | None:
    if replacement is None:
        return None
    if not isinstance(replacement, Mapping) or "content" not in replacement:
        return message
    content = json.decode(json.encode(replacement["content"]))
    if isinstance(message, AssistantMessage):
        return replace(message, content=decode_assistant_content(content)[0])
    return replace(message, content=decode_user_content(content)[0])
