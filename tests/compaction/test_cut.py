"""Which message may begin the part that is kept, and when the cut goes through a turn."""

import pytest

from agent_core.compaction.preparation import Cut, find_cut
from agent_core.kernel import EntryId
from agent_core.messages import (
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    Text,
)
from agent_core.transcript import ProjectedEntry
from tests.support.session.entries import AT_MS, assistant, call, entry, result, user

THOUSAND = "x" * 4_000
"""A thousand tokens."""
CUSTOM = CustomMessage(custom_type="x", content=(Text(text="note"),), at_ms=AT_MS)
BRANCH = BranchSummaryMessage(summary="went there", from_id="x", at_ms=AT_MS)
COMPACTED = CompactionSummaryMessage(summary="earlier", tokens_before=1, at_ms=AT_MS)
COMMAND = BashMessage(command="ls", output="a", exit_code=0, at_ms=AT_MS)


def placed(*messages: Message | None) -> list[ProjectedEntry]:
    """Give messages their places; None: an entry that the model does not see."""
    return [
        ProjectedEntry(entry=entry(f"e{number}", user("")), message=message)
        for number, message in enumerate(messages)
    ]


@pytest.mark.parametrize(
    ("message", "begins_turn"),
    [
        (user("words"), True),
        (COMMAND, True),
        (CUSTOM, True),
        (BRANCH, True),
        (COMPACTED, True),
        (assistant("answer"), False),
    ],
    ids=["user", "command", "custom", "branch-summary", "compaction-summary", "answer"],
)
def test_everything_but_a_tool_result_may_begin_the_kept_part(
    message: Message, *, begins_turn: bool
) -> None:
    said = placed(user(THOUSAND), message, assistant(THOUSAND))
    cut = find_cut(said, keep_tokens=1_001)
    assert cut == Cut(kept_from=1, turn_from=None if begins_turn else 0)


def test_a_tool_result_never_begins_it() -> None:
    said = placed(user("go"), assistant(call("read")), result(THOUSAND), assistant("done"))
    assert find_cut(said, keep_tokens=500) == Cut(kept_from=3, turn_from=0)


@pytest.mark.parametrize(
    ("keep_tokens", "kept_from"),
    [(1, 5), (1_000, 5), (1_001, 4), (2_000, 4), (2_001, 3), (4_001, 1), (6_000, 0), (9_000, 0)],
)
def test_the_kept_part_is_the_shortest_that_reaches_the_figure(
    keep_tokens: int, kept_from: int
) -> None:
    said = placed(*(user(THOUSAND) for _ in range(6)))
    assert find_cut(said, keep_tokens=keep_tokens) == Cut(kept_from=kept_from)


def test_where_nothing_follows_that_may_begin_it_the_last_before_does() -> None:
    said = placed(user("go"), assistant(call("read")), result(THOUSAND))
    assert find_cut(said, keep_tokens=500) == Cut(kept_from=1, turn_from=0)


def test_what_the_model_does_not_see_goes_with_what_follows_it() -> None:
    said = placed(user(THOUSAND), assistant("done"), None, None, user(THOUSAND))
    assert find_cut(said, keep_tokens=1_000) == Cut(kept_from=2)


def test_an_answer_without_a_turn_before_it_splits_none() -> None:
    said = placed(assistant(THOUSAND), assistant(THOUSAND))
    assert find_cut(said, keep_tokens=500) == Cut(kept_from=1)


@pytest.mark.parametrize("pinned", [None, EntryId("e0")])
def test_results_alone_cannot_be_cut(pinned: EntryId | None) -> None:
    assert find_cut(placed(result(THOUSAND)), keep_tokens=1, pinned=pinned) is None
    assert find_cut([], keep_tokens=1, pinned=pinned) is None
