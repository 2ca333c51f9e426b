"""Decides what is summarised and what is kept: settings, token estimates, cuts of long outputs; pure."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from agent_core.kernel import EntryId, JsonObject, JsonValue, json
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from agent_core.transcript import (
    AnyEntry,
    CompactionEntry,
    CompactionPreparation,
    ContextEditEntry,
    MessageEntry,
    ProjectedEntry,
    context_messages,
    project,
)

RESERVE_TOKENS = 16_384
KEEP_RECENT_TOKENS = 20_000
LARGEST_SHARE = 4
"""Neither figure takes more than one part in this many of the context window."""


class ModelFigures(Value, frozen=True, kw_only=True):
    """User settings for one model; None: the value for all models."""

    reserve_tokens: int | None = None
    keep_recent_tokens: int | None = None


class CompactionPolicy(Value, frozen=True, kw_only=True):
    """User settings of compaction."""

    enabled: bool = True
    """Whether it happens by itself; by hand it always works."""
    reserve_tokens: int = RESERVE_TOKENS
    """Room that must stay free for the next question and its answer."""
    keep_recent_tokens: int = KEEP_RECENT_TOKENS
    """How much of the newest conversation is kept word for word."""
    branch_reserve_tokens: int = RESERVE_TOKENS
    """Room that stays free beside a branch that is summarised."""
    offer_branch_summary: bool = True
    """Front ends ask whether a branch that is left shall be summarised; nothing here does."""
    by_model: Mapping[str, ModelFigures] = msgspec.field(default_factory=dict[str, ModelFigures])
    """By full name, `provider/id`."""

    def of_model(self, ref: str | None) -> "CompactionPolicy":
        """Return the figures that hold for a model; None: there is none."""
        own = None if ref is None else self.by_model.get(ref)
        if own is None:
            return self
        reserve, keep = own.reserve_tokens, own.keep_recent_tokens
        return replace(
            self,
            reserve_tokens=self.reserve_tokens if reserve is None else reserve,
            keep_recent_tokens=self.keep_recent_tokens if keep is None else keep,
        )

    def scaled(self, context_window: int) -> "CompactionPolicy":
        """Fit the figures to a model.

        Args:
            context_window: In tokens; 0 when unknown, which leaves the figures as they are.
        """
        if context_window <= 0:
            return self
        most = context_window // LARGEST_SHARE
        return replace(
            self,
            reserve_tokens=min(self.reserve_tokens, most),
            keep_recent_tokens=min(self.keep_recent_tokens, most),
        )


def should_compact(tokens: int, *, context_window: int, settings: CompactionPolicy) -> bool:
    """Return whether the context is so full that it must be compacted before more is asked.

    Never for a model whose context window is unknown (0), nor when it was switched off.
    """
    if not settings.enabled or context_window <= 0:
        return False
    return tokens > context_window - settings.scaled(context_window).reserve_tokens


UNITS_PER_TOKEN = 4
"""Everything is weighed in quarters of a token. Weights: measured on tests/compaction/corpus."""
LETTER = 1
DIGIT = 3
MARK = 2
"""Punctuation: programs and JSON are mostly that, and take more tokens than prose of their length."""
LINE_END = 4
"""With the indentation that follows; a space between words goes with the word."""
FOREIGN_LETTER = 2
"""Latin letters with accents, Cyrillic, Greek and the like."""
WIDE = 3
"""A Chinese, Japanese or Korean character."""
EMOJI = 4
IMAGE_UNITS = 4_800

_SLICE_CHARS = 1_000_000
_LETTERS = string.ascii_letters.encode()
_DIGITS = string.digits.encode()
_LINE_ENDS = b"\n\r\t"
_FOREIGN = re.compile("[\x80-\u1fff]+")
_EMOJI = re.compile("[\U0001f000-\U0001ffff]+")


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return _tokens(_units(text))


def estimate_message(message: Message) -> int:
    """Estimate the tokens of one message, rounded up."""
    return _tokens(_message_units(message))


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages; 0 for none."""
    return sum(map(estimate_message, messages))


def context_tokens(path: Sequence[AnyEntry], *, overhead: int = 0) -> int:
    """Return the tokens in the context: the provider's last count plus an estimate of the messages after it.

    A count from before a compaction or context edit is not valid for the current context; without a newer one,
    everything is estimated.

    Args:
        path: Root to leaf.
        overhead: Tokens of the system prompt and tools; a provider's count holds them already.
    """
    edited: set[EntryId] = set()
    for place in range(len(path) - 1, -1, -1):
        match path[place]:
            case CompactionEntry():
                break
            case ContextEditEntry(target=target):
                edited.add(target)
            case MessageEntry(message=AssistantMessage() as said) if _counted(said):
                newer = path[place + 1 :]
                # An attempt that failed after the count and was left out was never in the count.
                if not edited <= {entry.id for entry in newer}:
                    break
                return said.usage.total + estimate_messages(context_messages(newer))
            case _:
                pass
    return overhead + estimate_messages(context_messages(path))


def _counted(said: AssistantMessage) -> bool:
    return said.stop_reason not in {"error", "aborted"} and said.usage.total > 0


def _message_units(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage() | ToolResultMessage() | CustomMessage():
            return sum(map(_part_units, message.content))
        case BashMessage():
            return _units(message.command) + _units(message.output)
        case BranchSummaryMessage() | CompactionSummaryMessage():
            return _units(message.summary)
        case _:
            assert_never(message)


def _part_units(part: UserContent | AssistantContent) -> int:
    match part:
        case Text() | Thinking():
            return _units(part.text)
        case ToolCall():
            return _units(part.name) + _units(json.encode(part.arguments).decode())
        case Image():
            return IMAGE_UNITS
        case File():
            return part.tokens * UNITS_PER_TOKEN
        case _:
            assert_never(part)


def _units(text: str) -> int:
    # In slices: one step on a text of 100 MB would hold up all other threads for as long as it takes.
    if len(text) <= _SLICE_CHARS:
        return _slice_units(text)
    return sum(
        _slice_units(text[at : at + _SLICE_CHARS]) for at in range(0, len(text), _SLICE_CHARS)
    )


def _slice_units(text: str) -> int:
    # Counting by deletion runs at the speed of memory; a loop over characters would hold up the event loop.
    # Most of a text is letters: each step has only what the one before it left.
    plain = text.encode("ascii", "ignore")
    no_letters = plain.translate(None, _LETTERS)
    no_digits = no_letters.translate(None, _DIGITS)
    no_ends = no_digits.translate(None, _LINE_ENDS)
    letters = len(plain) - len(no_letters)
    digits = len(no_letters) - len(no_digits)
    ends = len(no_digits) - len(no_ends)
    marks = len(no_ends) - no_ends.count(b" ")
    units = letters * LETTER + digits * DIGIT + ends * LINE_END + marks * MARK
    beyond = len(text) - len(plain)
    if not beyond:
        return units
    foreign, emoji = _matched(_FOREIGN, text), _matched(_EMOJI, text)
    wide = beyond - foreign - emoji
    return units + foreign * FOREIGN_LETTER + emoji * EMOJI + wide * WIDE


def _matched(pattern: re.Pattern[str], text: str) -> int:
    return sum(run.end() - run.start() for run in pattern.finditer(text))


def _tokens(units: int) -> int:
    return -(-units // UNITS_PER_TOKEN)


HEAD_CHARS = 1_000
"""How much of an output stays: enough to know what it was."""
LEAST_SAVED_TOKENS = 100
"""An output that would free less is left alone."""


class CutOutput(Value, frozen=True, kw_only=True):
    """Content that replaces a tool result in the model's context."""

    target: EntryId
    content: tuple[UserContent, ...]
    saved_tokens: int


def cut_outputs(path: Sequence[AnyEntry], *, free_tokens: int) -> tuple[CutOutput, ...]:
    """Choose tool results to cut, oldest first, until about so many tokens are free.

    Args:
        path: Root to leaf.
        free_tokens: By estimate.

    Returns:
        Fewer than wanted, or none, when there is not so much tool output.
    """
    chosen: list[CutOutput] = []
    for placed in project(path):
        if free_tokens <= 0:
            break
        if not isinstance(placed.message, ToolResultMessage):
            continue
        content = _beginning(placed.message)
        shorter = replace(placed.message, content=content)
        saved = estimate_message(placed.message) - estimate_message(shorter)
        if saved >= LEAST_SAVED_TOKENS:
            chosen.append(CutOutput(target=placed.entry.id, content=content, saved_tokens=saved))
            free_tokens -= saved
    return tuple(chosen)


def _beginning(result: ToolResultMessage) -> tuple[UserContent, ...]:
    text = text_of(result.content)
    pictures = sum(isinstance(part, Image) for part in result.content)
    left_out = [f"{len(text) - HEAD_CHARS} more characters"] if len(text) > HEAD_CHARS else []
    left_out += [f"{pictures} pictures"] if pictures else []
    if not left_out:
        return result.content
    note = f"[… {' and '.join(left_out)} cut to make room; call the tool again if you need them]"
    return (Text(text=f"{text[:HEAD_CHARS]}\n{note}"),)


READERS = frozenset({"read"})
WRITERS = frozenset({"write", "edit"})


class TouchedFiles(Value, frozen=True, kw_only=True):
    """Paths as the tools were given them, sorted; a path is in one list only."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def details(self) -> JsonObject:
        """Return the form that compaction entries carry."""
        return {"readFiles": list(self.read), "modifiedFiles": list(self.modified)}


def touched_files(messages: Sequence[Message], *, before: JsonValue = None) -> TouchedFiles:
    """Collect the paths of the file tools' calls that did not fail.

    Args:
        messages: In order; results follow their calls.
        before: The details of an earlier compaction; its paths are carried on.
    """
    read, modified = set(_listed(before, "readFiles")), set(_listed(before, "modifiedFiles"))
    for call in _calls(messages):
        path = call.arguments.get("path")
        if not isinstance(path, str) or not path:
            continue
        if call.name in WRITERS:
            modified.add(path)
        elif call.name in READERS:
            read.add(path)
    return TouchedFiles(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def _calls(messages: Sequence[Message]) -> Iterable[ToolCall]:
    # Ids are unique within one answer only, so a failure is looked up among the results that follow it.
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            failed = _failed_after(messages, place)
            yield from (call for call in message.tool_calls if call.id not in failed)


def _failed_after(messages: Sequence[Message], place: int) -> frozenset[str]:
    failed: set[str] = set()
    for later in range(place + 1, len(messages)):
        message = messages[later]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage) and message.is_error:
            failed.add(message.call_id)
    return frozenset(failed)


def _listed(details: JsonValue, key: str) -> tuple[str, ...]:
    if not isinstance(details, Mapping):
        return ()
    paths = details.get(key)
    if not isinstance(paths, Sequence) or isinstance(paths, str):
        return ()
    return tuple(path for path in paths if isinstance(path, str))


class NothingToCompact(Value, frozen=True, kw_only=True):
    """Compaction would change nothing."""

    why: str


def prepare(
    path: Sequence[AnyEntry],
    *,
    context_window: int,
    settings: CompactionPolicy,
    pinned: EntryId | None = None,
    overhead: int = 0,
) -> CompactionPreparation | NothingToCompact:
    """Cut the conversation into what is summarised and what is kept.

    The part that the previous compaction kept is taken up again: it may be summarised now, together with its
    summary.

    Args:
        path: Root to leaf.
        context_window: Of the model that goes on, in tokens; 0 when unknown.
        settings: As the user set them; scaled to the window here.
        pinned: An entry that stays word for word, with all that follows it.
        overhead: Tokens of the system prompt and tools, for `tokens_before`.
    """
    placed = project(path)
    earlier = placed[0].entry if placed else None
    if isinstance(earlier, CompactionEntry):
        placed = placed[1:]
        if _ends_with(path, earlier):
            return NothingToCompact(why="already compacted: nothing has been said since")
    keep = settings.scaled(context_window).keep_recent_tokens
    cut = find_cut(placed, keep_tokens=keep, pinned=pinned)
    history, prefix = _halves(placed, cut.kept_from, cut.turn_from) if cut else ((), ())
    if cut is None or not (history or prefix):
        return NothingToCompact(why="the conversation is too short to be compacted")
    before = earlier if isinstance(earlier, CompactionEntry) else None
    # What a hook wrote into the details is its own: it need not mean what ours does.
    details = before.details if before is not None and not before.from_hook else None
    files = touched_files((*history, *prefix), before=details)
    messages = [one.message for one in placed]
    first = next(place for place, message in enumerate(messages) if message is not None)
    points = (point for point in _cut_points(placed, pinned=pinned) if point > first)
    return CompactionPreparation(
        messages=history,
        turn_prefix=prefix,
        first_kept=placed[cut.kept_from].entry.id,
        tokens_before=context_tokens(path, overhead=overhead),
        previous_summary=None if before is None else before.summary,
        read_files=files.read,
        modified_files=files.modified,
        placed=tuple((one.entry.id, one.message) for one in placed),
        cut_points=tuple(placed[_with_unseen(messages, point)].entry.id for point in points),
        earlier_details=details,
    )


def recut(preparation: CompactionPreparation, first_kept: EntryId) -> CompactionPreparation:
    """Return the preparation with another cut.

    Args:
        preparation: Result of `prepare`.
        first_kept: One of its `cut_points`.
    """
    entries = [entry for entry, _ in preparation.placed]
    messages = [message for _, message in preparation.placed]
    start = entries.index(first_kept)
    point = next(place for place in range(start, len(messages)) if messages[place] is not None)
    turn_from = None if _begins_turn(messages[point]) else _turn_before(messages, point)
    middle = point if turn_from is None else turn_from
    history = tuple(one for one in messages[:middle] if one is not None)
    prefix = tuple(one for one in messages[middle:point] if one is not None)
    files = touched_files((*history, *prefix), before=preparation.earlier_details)
    return replace(
        preparation,
        messages=history,
        turn_prefix=prefix,
        first_kept=first_kept,
        read_files=files.read,
        modified_files=files.modified,
    )


def _ends_with(path: Sequence[AnyEntry], compaction: CompactionEntry) -> bool:
    """Return whether nothing that the model sees has followed the compaction."""
    place = next(place for place, entry in enumerate(path) if entry is compaction)
    return not any(one.message is not None for one in project(path[place + 1 :]))


def _halves(
    placed: Sequence[ProjectedEntry], kept_from: int, turn_from: int | None
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    middle = kept_from if turn_from is None else turn_from
    return _messages(placed[:middle]), _messages(placed[middle:kept_from])


def _messages(placed: Sequence[ProjectedEntry]) -> tuple[Message, ...]:
    return tuple(one.message for one in placed if one.message is not None)


class Cut(Value, frozen=True, kw_only=True):
    """Where the kept part begins, as places in the list that was cut."""

    kept_from: int
    turn_from: int | None = None
    """Where the turn began that the cut goes through; None: the cut lies between turns."""


def find_cut(
    placed: Sequence[ProjectedEntry], *, keep_tokens: int, pinned: EntryId | None = None
) -> Cut | None:
    """Find where to cut so that about `keep_tokens` of the newest conversation stay.

    A tool result never begins the kept part: it would stand there without its call.

    Args:
        placed: Entries as the model sees them, in order.
        keep_tokens: By estimate.
        pinned: Kept, however long it and what follows it are.

    Returns:
        None when there is nothing that the kept part could begin with.
    """
    points = _cut_points(placed, pinned=pinned)
    if not points:
        return None
    reached = _walk_back(placed, keep_tokens=keep_tokens)
    kept_from = next((point for point in points if point >= reached), points[-1])
    messages = [one.message for one in placed]
    turn_from = None if _begins_turn(messages[kept_from]) else _turn_before(messages, kept_from)
    return Cut(kept_from=_with_unseen(messages, kept_from), turn_from=turn_from)


def _cut_points(placed: Sequence[ProjectedEntry], *, pinned: EntryId | None) -> list[int]:
    """Return the places with which a kept part may begin, up to the pinned entry."""
    last = next((place for place, one in enumerate(placed) if one.entry.id == pinned), len(placed))
    return [place for place, one in enumerate(placed[: last + 1]) if _may_begin(one.message)]


def _turn_before(messages: Sequence[Message | None], point: int) -> int | None:
    """Return the place of the turn's first message that a cut goes through; None: there is none before it."""
    places = range(point - 1, -1, -1)
    return next((place for place in places if _begins_turn(messages[place])), None)


def _with_unseen(messages: Sequence[Message | None], point: int) -> int:
    """Return the place of the first of the entries directly before a cut of which the model sees nothing."""
    while point > 0 and messages[point - 1] is None:
        point -= 1
    return point


def _walk_back(placed: Sequence[ProjectedEntry], *, keep_tokens: int) -> int:
    total = 0
    for place in range(len(placed) - 1, -1, -1):
        message = placed[place].message
        total += 0 if message is None else estimate_message(message)
        if message is not None and total >= keep_tokens:
            return place
    return 0


def _may_begin(message: Message | None) -> bool:
    return message is not None and not isinstance(message, ToolResultMessage)


def _begins_turn(message: Message | None) -> bool:
    return _may_begin(message) and not isinstance(message, AssistantMessage)
