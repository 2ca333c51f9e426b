"""The picture of a session: what a front end that comes late sees of the run going on."""

import pytest

from agent_core.events import (
    BashEnded,
    BashStarted,
    ChangeCounts,
    ChangesUpdated,
    CompactionEnded,
    CompactionStarted,
    Event,
    Failure,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    Notice,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    SessionStateChanged,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    UsageReport,
)
from agent_core.kernel import ItemId, RunId, ToolCallId, TurnId
from agent_core.messages import Text, Usage
from agent_core.session.snapshot import (
    ITEMS_KEPT,
    PIECES_HELD,
    TAIL_CHARS,
    Activities,
    ItemView,
    SnapshotBuilder,
)

RUN, TURN, CALL = RunId("r"), TurnId("t"), ToolCallId("c")
USAGE = UsageReport(tokens=Usage(), context_used=0, context_size=0)
STARTED = RunStarted(run=RUN, message_id=None, model="p/m")


def message(item: str = "m") -> MessageStarted:
    return MessageStarted(run=RUN, turn=TURN, item=ItemId(item), role="assistant")


def tool(item: str = "c") -> ToolStarted:
    return ToolStarted(run=RUN, turn=TURN, item=ItemId(item), call=CALL, name="bash", title="ls")


def output(text: str, item: str = "c") -> ToolOutputDelta:
    return ToolOutputDelta(run=RUN, turn=TURN, item=ItemId(item), text=text)


def picture(*events: Event) -> SnapshotBuilder:
    made = SnapshotBuilder()
    made.apply(STARTED, 5)
    for event in events:
        made.apply(event, 6)
    return made


def items(made: SnapshotBuilder) -> tuple[ItemView, ...]:
    assert made.run is not None
    return made.run.items


def test_without_a_run_there_is_nothing_to_see() -> None:
    assert SnapshotBuilder().run is None


def test_a_run_is_seen_from_its_start_with_its_time() -> None:
    run = picture().run
    assert run is not None
    assert (run.run, run.started_ms, run.items) == (RUN, 5, ())


def test_words_thoughts_and_tool_output_are_seen_as_far_as_they_came() -> None:
    call = ToolInputDelta(run=RUN, turn=TURN, item=ItemId("c"), text='{"command"')
    thought = ThoughtStarted(run=RUN, turn=TURN, item=ItemId("t"))
    made = picture(
        thought,
        ThoughtDelta(run=RUN, turn=TURN, item=ItemId("t"), text="hm"),
        message(),
        MessageDelta(run=RUN, turn=TURN, item=ItemId("m"), text="Hel"),
        MessageDelta(run=RUN, turn=TURN, item=ItemId("m"), text="lo"),
        tool(),
        call,
        output("a"),
    )
    assert [(one.kind, one.text_so_far, one.ended) for one in items(made)] == [
        ("thought", "hm", None),
        ("message", "Hello", None),
        ("tool", "a", None),
    ]


def test_an_ended_item_is_its_ended_event() -> None:
    running = ToolRunning(run=RUN, turn=TURN, item=ItemId("c"), title="ls", input={})
    over = ToolEnded(
        run=RUN, turn=TURN, item=ItemId("c"), call=CALL, name="bash", status="ok",
        content=(Text(text="a"),), details=None, duration_ms=1,
    )  # fmt: skip
    said = MessageEnded(
        run=RUN, turn=TURN, item=ItemId("m"), role="assistant", content=(Text(text="Hello"),)
    )
    thought = ThoughtEnded(run=RUN, turn=TURN, item=ItemId("t"), text="hm")
    started = (
        message(),
        tool(),
        ThoughtStarted(run=RUN, turn=TURN, item=ItemId("t")),
        output("a"),
        running,
    )
    made = picture(*started, said, over, thought)
    assert items(made) == (
        ItemView(item=ItemId("m"), kind="message", started=started[0], ended=said),
        ItemView(item=ItemId("c"), kind="tool", started=started[1], running=running, ended=over),
        ItemView(item=ItemId("t"), kind="thought", started=started[2], ended=thought),
    )


def test_of_long_tool_output_only_the_end_is_held_and_of_words_everything() -> None:
    made = picture(message(), tool())
    piece = "0123456789" * 1_000
    for _ in range(1_000):
        made.apply(output(piece), 6)
        made.apply(MessageDelta(run=RUN, turn=TURN, item=ItemId("m"), text="w"), 6)
    words, shown = items(made)
    assert shown.text_so_far == (piece * 2)[-TAIL_CHARS:]
    assert sum(map(len, shown.text)) <= TAIL_CHARS + PIECES_HELD * len(piece)
    assert words.text_so_far == "w" * 1_000


def test_only_the_newest_items_are_kept() -> None:
    made = picture(*(message(str(number)) for number in range(ITEMS_KEPT + 3)))
    assert [one.item for one in items(made)] == [str(n) for n in range(3, ITEMS_KEPT + 3)]
    made.apply(MessageDelta(run=RUN, turn=TURN, item=ItemId("0"), text="late"), 6)
    made.apply(MessageEnded(run=RUN, turn=TURN, item=ItemId("0"), role="assistant", content=()), 6)
    assert len(items(made)) == ITEMS_KEPT


def test_what_waits_to_be_reviewed_outlives_runs() -> None:
    made = picture(
        ChangesUpdated(run=RUN, files=1, additions=2, deletions=3, unreviewed=1),
        Notice(level="info", text="x"),
    )
    counts = ChangeCounts(files=1, additions=2, deletions=3, unreviewed=1)
    assert made.changes == counts
    made.apply(RunEnded(run=RUN, status="completed", usage=USAGE, changes=ChangeCounts()), 9)
    assert (made.run, made.changes) == (None, counts)
    made.apply(STARTED, 10)
    assert made.changes == counts


# What goes on.

RETRY = RetryStarted(
    run=RUN,
    attempt=1,
    max_attempts=3,
    delay_ms=2_000,
    error=Failure(kind="Overloaded", message="busy"),
)
COMPACTING = CompactionStarted(run=None, reason="manual")
COMPACTED = CompactionEnded(
    run=None,
    reason="manual",
    summary="s",
    tokens_before=1,
    tokens_after=1,
    aborted=False,
    will_retry=False,
    error=None,
)
OVER = RunEnded(run=RUN, status="completed", usage=USAGE, changes=ChangeCounts())
RAN = BashEnded(exit_code=0, output="", cancelled=False, truncated=False, full_output=None)


@pytest.mark.parametrize(
    ("events", "activity"),
    [
        ((), Activities()),
        ((STARTED,), Activities(run=RUN)),
        ((STARTED, OVER), Activities()),
        ((COMPACTING,), Activities(compaction="manual")),
        ((COMPACTING, COMPACTED), Activities()),
        (
            (STARTED, RETRY, SessionStateChanged(state="retrying")),
            Activities(run=RUN, retry=RETRY),
        ),
        ((STARTED, RETRY, SessionStateChanged(state="running")), Activities(run=RUN)),
        ((STARTED, RETRY, RetryEnded(run=RUN, success=True, attempt=1)), Activities(run=RUN)),
        ((STARTED, RETRY, OVER), Activities()),
        ((BashStarted(command="ls"),), Activities(bash="ls")),
        ((STARTED, BashStarted(command="ls")), Activities(run=RUN, bash="ls")),
        ((BashStarted(command="ls"), RAN), Activities()),
    ],
    ids=[
        "nothing",
        "a run",
        "a run that ended",
        "a compaction",
        "a compaction that ended",
        "a wait before a retry",
        "the retry itself",
        "a retry that made it good",
        "a wait that ended with its run",
        "a command of the user",
        "both",
        "a command that ended",
    ],
)
def test_what_goes_on_is_seen(events: tuple[Event, ...], activity: Activities) -> None:
    made = SnapshotBuilder()
    for event in events:
        made.apply(event, 1)
    assert made.activity == activity
