"""Selection of the messages for the summary of a branch that is left, and its prompt; pure."""

from collections.abc import Iterable, Sequence

from agent_core.compaction.estimate import estimate_message
from agent_core.compaction.files import TouchedFiles, touched_files
from agent_core.compaction.prompts import EXACT, SECTIONS, focused, tagged, with_files
from agent_core.compaction.serialisation import serialise
from agent_core.compaction.settings import RESERVE_TOKENS, CompactionPolicy
from agent_core.kernel import JsonValue
from agent_core.kernel.values import Value
from agent_core.messages import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    ToolResultMessage,
    Usage,
)
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ProjectedEntry,
    project,
)

UNKNOWN_WINDOW = 128_000
"""Context window in tokens that is assumed for a model without a stated one."""
SUMMARY_FITS_BELOW = 0.9
"""An earlier summary is worth going over the budget for, as long as this share of it is not used up."""

NOTE = """\
The user left this point, worked on another branch of the conversation, and has come back.
What happened on that branch:"""

_PROMPT = f"""\
The record above is a branch of the conversation that the user has left. Write the notes that somebody needs who \
goes on from before it, under exactly these headings:

{SECTIONS}

{EXACT}"""


class BranchPreparation(Value, frozen=True, kw_only=True):
    """Part of a branch that will be summarised."""

    messages: tuple[Message, ...]
    """In order; the oldest are left out when there is no room for all."""
    files: TouchedFiles


class BranchSummary(Value, frozen=True, kw_only=True):
    """Summary of a branch."""

    summary: str
    details: JsonValue
    """`readFiles` and `modifiedFiles`."""
    usage: Usage | None


def prepare_branch(
    path: Sequence[AnyEntry],
    *,
    shared: int,
    context_window: int,
    reserve_tokens: int = RESERVE_TOKENS,
) -> BranchPreparation | None:
    """Choose what to summarise of the branch that is left.

    Entries hidden by a compaction on the branch are not read again: its summary replaces them.

    Args:
        path: Root to the leaf that is left.
        shared: How many entries at its beginning stay on the path: they are not summarised.
        context_window: Of the model that will be asked, in tokens; 0 when unknown.
        reserve_tokens: Room for the request around the branch, and for the answer.

    Returns:
        None when the branch says nothing.
    """
    left = {entry.id for entry in path[shared:]}
    placed = [one for one in project(path) if one.entry.id in left and one.message is not None]
    window = context_window or UNKNOWN_WINDOW
    reserve = CompactionPolicy(reserve_tokens=reserve_tokens).scaled(window).reserve_tokens
    messages = _newest(_messages(placed), budget=window - reserve)
    if not serialise(messages).strip():
        return None
    return BranchPreparation(messages=messages, files=_files(placed))


def shared_length(path: Sequence[AnyEntry], other: Sequence[AnyEntry]) -> int:
    """Count the entries that two paths have in common at their beginning."""
    pairs = zip(path, other, strict=False)
    differs = (place for place, (one, two) in enumerate(pairs) if one.id != two.id)
    return next(differs, min(len(path), len(other)))


def branch_prompt(conversation: str, *, instructions: str | None, replaces: bool) -> str:
    """Return the prompt for the summary of a branch.

    Args:
        conversation: The branch as plain text.
        instructions: Focus that the user asks for; None or blank: no focus.
        replaces: Whether the instructions replace Tiller's own.
    """
    record = tagged("conversation", conversation)
    if replaces and instructions is not None and instructions.strip():
        return f"{record}\n\n{instructions.strip()}"
    return focused([record, _PROMPT], instructions)


def branch_summary(notes: str, preparation: BranchPreparation, *, usage: Usage) -> BranchSummary:
    """Make the summary of the notes that a model wrote."""
    return BranchSummary(
        summary=with_files(f"{NOTE}\n\n{notes}", preparation.files),
        details=preparation.files.details(),
        usage=usage,
    )


def _newest(messages: Sequence[Message], *, budget: int) -> tuple[Message, ...]:
    """Return the newest messages that fit the budget, oldest first, without tool results.

    Also returned: the newest when it does not fit, shortened in the request to the model; and a summary that does not
    fit, while less than `SUMMARY_FITS_BELOW` of the budget is used.
    """
    taken: list[Message] = []
    total = 0
    for message in reversed(messages):
        if isinstance(message, ToolResultMessage):
            # What a tool said is mostly in the answer that followed.
            continue
        size = estimate_message(message)
        fits = total + size <= budget or not taken
        if fits or (_is_summary(message) and total < budget * SUMMARY_FITS_BELOW):
            taken.append(message)
        if not fits:
            break
        total += size
    return tuple(reversed(taken))


def _is_summary(message: Message) -> bool:
    return isinstance(message, BranchSummaryMessage | CompactionSummaryMessage)


def _files(placed: Sequence[ProjectedEntry]) -> TouchedFiles:
    read: set[str] = set()
    modified: set[str] = set()
    for files in (touched_files(_messages(placed)), *_earlier(placed)):
        read.update(files.read)
        modified.update(files.modified)
    return TouchedFiles(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def _earlier(placed: Iterable[ProjectedEntry]) -> Iterable[TouchedFiles]:
    for one in placed:
        match one.entry:
            # What a hook wrote into the details is its own: it need not mean what ours does.
            case (CompactionEntry() | BranchSummaryEntry()) as entry if not entry.from_hook:
                yield touched_files((), before=entry.details)
            case _:
                pass


def _messages(placed: Iterable[ProjectedEntry]) -> tuple[Message, ...]:
    return tuple(one.message for one in placed if one.message is not None)
