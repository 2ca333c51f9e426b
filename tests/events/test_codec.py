"""Events as JSON: every event has a name and a form that the schema of the wire accepts."""

import typing
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.events import (
    Attendant,
    BackgroundEnded,
    BackgroundInfo,
    BackgroundListening,
    BackgroundStarted,
    BashEnded,
    BashOutput,
    BashStarted,
    ChangeCounts,
    ChangesUpdated,
    CheckpointCreated,
    CheckpointInfo,
    CheckpointRestored,
    CommandRead,
    CommandSubject,
    CompactionEnded,
    CompactionStarted,
    DocumentChange,
    EditApplied,
    EditConflict,
    EditProposed,
    EditRejected,
    EditSaved,
    EditUndone,
    EntryLabelled,
    ErrorRaised,
    Event,
    EventEnvelope,
    ExtensionError,
    Failure,
    FolderTrust,
    LeafMoved,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    ModelChanged,
    Notice,
    PermissionOption,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionLine,
    QuestionOption,
    QuestionRequested,
    QuestionResolved,
    QueueChanged,
    QueueItem,
    RetryEnded,
    RetryStarted,
    RuleInfo,
    RunEnded,
    RunParent,
    RunStageStarted,
    RunStarted,
    SessionClients,
    SessionConfig,
    SessionConfigured,
    SessionRoots,
    SessionStateChanged,
    SessionTitle,
    SessionTrust,
    SessionUsage,
    TargetSubject,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskUpdated,
    ThoughtDelta,
    ThoughtEnded,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UiEditorText,
    UiNotify,
    UiStatus,
    UiTitle,
    UiWidget,
    UsageReport,
    WorkspaceRoot,
)
from agent_core.events.codec import NAMES, encode
from agent_core.kernel import (
    EntryId,
    ItemId,
    MessageId,
    QueueId,
    RunId,
    SessionId,
    ToolCallId,
    TurnId,
)
from agent_core.messages import Cost, Image, Text, Usage
from tests.support.session.event_schema import check_event
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.methods import server_capability

TASK = TaskInfo(
    id="t1",
    session=SessionId("s"),
    item=ItemId("i"),
    description="look",
    preset="explore",
    state="running",
    background=True,
    started_ms=1,
)
RUN, TURN, ITEM, CALL = RunId("r"), TurnId("t"), ItemId("i"), ToolCallId("c")
USAGE = UsageReport(
    tokens=Usage(input=10, output=5, reasoning=2, cost=Cost(input=0.25)),
    context_used=15,
    context_size=1000,
)
FAILURE = Failure(kind="RateLimited", message="slow down", retryable=True, retry_after_ms=1000)
PARENT = RunParent(session=SessionId("s"))
COUNTS = ChangeCounts(files=1, additions=2, deletions=3, unreviewed=1)
DOCUMENTS = (DocumentChange(path=Path("/w/a.py"), status="applied", saved=True, sha256="ab"),)

RULE = RuleInfo(
    id="allow-1",
    tool="bash",
    argv_prefix=("npm", "test"),
    verdict="allow",
    scope="project",
    match=("npm test",),
)
QUESTION = PermissionRequest(
    request="p",
    session=SessionId("s"),
    run=RUN,
    item=ITEM,
    title="Run npm test",
    description="no rule allows it",
    risk="medium",
    since_ms=1000,
    expires_ms=301_000,
    subject=CommandSubject(
        argv=("npm", "test"),
        command="npm test",
        cwd=Path("/w"),
        plain=True,
        sandbox="none",
        parsed=(CommandRead(argv=("npm", "test")),),
        needs=("network",),
    ),
    options=(
        PermissionOption(id="allowProject", kind="allowProject", label="Always", rule=RULE),
        PermissionOption(id="rejectOnce", kind="rejectOnce", label="Reject"),
    ),
    default="rejectOnce",
)
TARGET = TargetSubject(
    type="outsideRoot", tool="write", sandbox="full", path=Path("/etc/x"), input={"path": "/etc/x"}
)

FORM = Question(
    request="q",
    session=SessionId("s"),
    run=RUN,
    questions=(
        QuestionLine(
            id="a",
            text="Which?",
            kind="choice",
            options=(QuestionOption(id="x", label="X", description="the first"),),
            default=("x",),
        ),
        QuestionLine(id="b", text="Sure?", kind="confirm", default=False),
        QuestionLine(id="c", text="How?", kind="text"),
    ),
    blocking=True,
    since_ms=0,
    expires_ms=1000,
)

SAMPLES: tuple[Event, ...] = (
    SessionStateChanged(state="running"),
    SessionConfigured(
        config=SessionConfig(
            model="p/m",
            thinking="low",
            mode="ask",
            auto_compact=True,
            steering="all",
            follow_up="one-at-a-time",
            tools=("read",),
        )
    ),
    SessionUsage(usage=USAGE),
    RunStarted(run=RUN, message_id=MessageId("m"), model="p/m", parent=PARENT),
    RunStageStarted(run=RUN, stage="execute"),
    RunEnded(run=RUN, status="failed", usage=USAGE, changes=COUNTS, error=FAILURE, parent=PARENT),
    TurnStarted(run=RUN, turn=TURN, index=0),
    TurnEnded(run=RUN, turn=TURN, index=0, stop_reason="tool_use", usage=USAGE),
    MessageStarted(run=RUN, turn=TURN, item=ITEM, role="assistant", model="p/m"),
    MessageDelta(run=RUN, turn=TURN, item=ITEM, text="x"),
    MessageEnded(
        run=RUN,
        turn=None,
        item=ITEM,
        role="user",
        content=(Text(text="x"), Image(mime="image/png", data="AA==")),
        delivery="steer",
        message_id=MessageId("m"),
        entry=EntryId("e"),
    ),
    ThoughtStarted(run=RUN, turn=TURN, item=ITEM),
    ThoughtDelta(run=RUN, turn=TURN, item=ITEM, text="x"),
    ThoughtEnded(run=RUN, turn=TURN, item=ITEM, text="x"),
    ToolStarted(run=RUN, turn=TURN, item=ITEM, call=CALL, name="read", title="read a.py"),
    ToolInputDelta(run=RUN, turn=TURN, item=ITEM, text="{"),
    ToolInputDelta(run=RUN, turn=TURN, item=ITEM, text="", partial={"path": "a", "edits": []}),
    ToolRunning(run=RUN, turn=TURN, item=ITEM, title="read a.py", input={"path": "a.py"}),
    ToolOutputDelta(run=RUN, turn=TURN, item=ITEM, text="x"),
    ToolEnded(
        run=RUN,
        turn=TURN,
        item=ITEM,
        call=CALL,
        name="read",
        status="ok",
        content=(Text(text="x"),),
        details={"path": "a.py"},
        duration_ms=3,
    ),
    EditApplied(run=RUN, edit="e", call=CALL, documents=DOCUMENTS),
    EditConflict(run=RUN, edit="e", call=CALL, documents=DOCUMENTS),
    EditRejected(run=RUN, edit="e", call=CALL, documents=DOCUMENTS),
    EditProposed(run=RUN, edit="e", call=CALL, documents=DOCUMENTS),
    EditUndone(run=None, edit="e", call=CALL, documents=DOCUMENTS),
    EditSaved(run=None, edit="e", call=CALL, documents=DOCUMENTS),
    ChangesUpdated(run=RUN, files=1, additions=2, deletions=3, unreviewed=1),
    QueueChanged(
        queue=(
            QueueItem(
                queue_id=QueueId("q"), delivery="steer", content=(Text(text="x"),), at_ms=1000
            ),
        ),
        paused=True,
    ),
    PermissionRequested(run=RUN, request=QUESTION),
    PermissionRequested(run=None, request=replace(QUESTION, run=None, subject=TARGET)),
    PermissionRequested(
        run=RUN, request=replace(QUESTION, subject=replace(TARGET, type="tool", path=None))
    ),
    PermissionRequested(
        run=RUN, request=replace(QUESTION, subject=replace(TARGET, type="edit", change_set="i"))
    ),
    PermissionResolved(run=RUN, request="p", option=None, by="cancelled"),
    PermissionResolved(run=RUN, request="p", option="allowProject", by="panel", rule=RULE),
    QuestionRequested(run=RUN, request=FORM),
    QuestionRequested(run=None, request=replace(FORM, run=None, expires_ms=None)),
    QuestionResolved(run=RUN, request="q", by="cancelled"),
    QuestionResolved(run=RUN, request="q", by="panel", answers={"a": ("x",), "b": True, "c": "d"}),
    CompactionStarted(run=None, reason="manual"),
    CompactionEnded(
        run=RUN,
        reason="threshold",
        summary="s",
        tokens_before=10,
        tokens_after=5,
        aborted=False,
        will_retry=False,
    ),
    RetryStarted(run=RUN, attempt=1, max_attempts=3, delay_ms=2000, error=FAILURE),
    RetryEnded(run=RUN, success=False, attempt=3, error=FAILURE),
    ModelChanged(model="p/m", thinking="off", source="set"),
    SessionTitle(title=None),
    SessionClients(clients=(Attendant(role="editor", name="Neovim"),)),
    SessionRoots(roots=(WorkspaceRoot(folder=Path("/w"), name="w", primary=True, trusted=True),)),
    SessionTrust(items=(FolderTrust(folder=Path("/w"), trusted=True),)),
    LeafMoved(leaf=None, from_=EntryId("a")),
    CheckpointCreated(
        run=RUN, checkpoint=CheckpointInfo(checkpoint="c", run=RUN, at_ms=1000, files=1)
    ),
    CheckpointRestored(checkpoint=CheckpointInfo(checkpoint="c", run=None, at_ms=1000, files=0)),
    EntryLabelled(entry=EntryId("a"), label=None),
    BashStarted(command="make"),
    BashOutput(text="x"),
    BashEnded(exit_code=None, output="x", cancelled=True, truncated=False, full_output=None),
    BackgroundStarted(
        run=RUN,
        command=BackgroundInfo(id="bg1", item=ItemId("i"), command="npm run dev", log="/l"),
    ),
    BackgroundListening(id="bg1", ports=(5173,)),
    BackgroundEnded(id="bg1", exit_code=0, signal=None, by="itself"),
    TaskCreated(run=RunId("r"), task=TASK),
    TaskUpdated(task=TASK),
    TaskEnded(task=TASK, text="found"),
    Notice(level="warning", text="x"),
    ErrorRaised(run=None, error=FAILURE),
    ExtensionError(extension="h", event="context", error="boom"),
    UiNotify(extension="h", view={"text": "x", "level": "info"}),
    UiStatus(extension="h", view={"key": "k", "text": None}),
    UiWidget(extension="h", view={"key": "k", "view": None, "placement": "aboveEditor"}),
    UiTitle(extension="h", view={"text": "x"}),
    UiEditorText(extension="h", view={"text": "x", "mode": "replace"}),
)


def test_there_is_a_sample_and_a_name_for_every_event_of_the_union() -> None:
    union = set(typing.get_args(Event))
    assert {type(one) for one in SAMPLES} == union
    assert set(NAMES) == union
    assert len(set(NAMES.values())) == len(union)


def test_the_server_announces_exactly_the_events_there_are() -> None:
    assert server_capability()["events"] == list(NAMES.values())


@pytest.mark.parametrize(
    "event", SAMPLES, ids=[f"{NAMES[type(one)]} {at}" for at, one in enumerate(SAMPLES)]
)
def test_every_event_fits_the_schema_of_the_wire(event: Event) -> None:
    wire = serializer.event(EventEnvelope(seq=7, first=7, at_ms=1_795_000_000_123, event=event))
    assert wire["seq"] == 7
    assert wire["at"] == "2026-11-18T11:06:40.123Z"
    check_event(wire)


def test_a_merged_delta_tells_where_its_range_begins() -> None:
    event = MessageDelta(run=RUN, turn=TURN, item=ITEM, text="abc")
    assert encode(EventEnvelope(seq=9, first=5, at_ms=0, event=event)) == {
        "seq": 9,
        "from": 5,
        "at": "1970-01-01T00:00:00.000Z",
        "type": "message.delta",
        "run": "r",
        "turn": "t",
        "item": "i",
        "text": "abc",
    }


def test_paths_stay_paths_for_front_ends_without_uris() -> None:
    event = EditApplied(run=RUN, edit="e", call=CALL, documents=DOCUMENTS)
    assert encode(EventEnvelope(seq=1, first=1, at_ms=0, event=event))["documents"] == [
        {"path": "/w/a.py", "status": "applied", "saved": True, "sha256": "ab"}
    ]
