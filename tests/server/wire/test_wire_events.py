"""Every event of the protocol has an example that fits its schema, and what does not fit is told."""

import pytest
from jsonschema import Draft202012Validator

from agent_core.events.codec import NAMES
from tests.support.session.event_schema import SCHEMA, check_event
from tiller_server.lsp.wire.events import EVENTS

TOKENS = {"in": 10, "out": 2, "cacheRead": 0, "cacheWrite": 0, "reasoning": 0}
USAGE = {"context": {"used": None, "size": 32000}, "tokens": TOKENS}
COST = {"amount": 0.5, "currency": "USD", "estimated": False}
COUNTS = {"files": 1, "additions": 3, "deletions": 2, "unreviewed": 1}
CONTENT = [{"type": "text", "text": "hi"}]
ERROR = {"kind": "ModelError", "message": "The model said 500.", "retryable": True}
EDIT = {
    "edit": "e1",
    "call": "t1",
    "documents": [{"uri": "file:///w/a.py", "status": "applied", "saved": False, "version": 2}],
}
TASK = {
    "id": "t1",
    "session": "s2",
    "item": "i",
    "description": "look for it",
    "preset": "explore",
    "state": "queued",
    "background": False,
    "activity": "",
    "turns": 0,
    "toolCalls": 0,
    "tokens": 0,
    "startedMs": 1,
    "durationMs": 0,
}
BACKGROUND = {"id": "bg1", "item": "i", "command": "npm run dev", "log": "/l", "ports": []}
CHECKPOINT = {"checkpoint": "c1", "run": "r1", "at": "2026-01-01T00:00:00.000Z", "files": 2}
PERMISSION = {
    "request": "p1",
    "session": "s1",
    "run": "r1",
    "item": "i1",
    "title": "Delete a.py",
    "risk": "high",
    "since": "2026-01-01T00:00:00.000Z",
    "subject": {"type": "delete", "uri": "file:///w/a.py"},
    "options": [{"id": "no", "kind": "rejectOnce", "label": "No"}],
    "default": "no",
}
QUESTION = {
    "request": "q1",
    "session": "s1",
    "run": "r1",
    "questions": [{"id": "sure", "text": "Sure?", "kind": "confirm", "default": False}],
    "blocking": False,
}
CONFIG = {
    "model": None,
    "thinking": "off",
    "mode": "plan",
    "autoCompact": False,
    "steering": "all",
    "followUp": "all",
    "budgets": {"usd": 1},
    "tools": [],
    "offerBranchSummary": False,
}
QUEUED = {
    "queueId": "q1",
    "delivery": "steer",
    "content": CONTENT,
    "at": "2026-01-01T00:00:00.000Z",
}
RUN = {"run": "r1"}
TURN = {"run": "r1", "turn": "t1"}
ITEM = {"run": "r1", "turn": "t1", "item": "i1"}
VIEW = {"extension": "todo", "request": "q1", "view": {"title": "Choose", "options": ["a", "b"]}}

FIELDS: dict[str, dict] = {
    "session.state": {"state": "compacting"},
    "session.config": {"config": CONFIG},
    "session.roots": {
        "roots": [{"uri": "file:///w", "name": "w", "primary": True, "trusted": True}]
    },
    "session.usage": {**RUN, "usage": USAGE},
    "session.title": {"title": None},
    "session.clients": {"clients": [{"role": "ci", "name": "bot"}]},
    "session.trust": {"items": [{"folder": "file:///w", "trusted": True}]},
    "run.started": {**RUN, "messageId": "m1", "model": "lab/m", "parent": {"session": "s-1"}},
    "run.ended": {
        **RUN,
        "parent": {"session": "s-1"},
        "status": "failed",
        "usage": {"tokens": TOKENS},
        "cost": None,
        "changes": COUNTS,
        "error": {**ERROR, "httpStatus": 500, "retryAfterMs": 10},
    },
    "turn.started": {**TURN, "index": 0},
    "turn.ended": {**TURN, "index": 0, "stopReason": "toolUse", "usage": {"tokens": TOKENS}},
    "message.started": {**ITEM, "role": "assistant", "model": "lab/m"},
    "message.delta": {**ITEM, "from": 3, "text": "hi"},
    "message.ended": {
        **ITEM,
        "role": "user",
        "content": CONTENT,
        "delivery": "steer",
        "messageId": "m2",
    },
    "thought.started": ITEM,
    "thought.delta": {**ITEM, "text": "hm"},
    "thought.ended": {**ITEM, "from": 2, "text": "hm"},
    "tool.started": {**ITEM, "call": "c1", "name": "bash", "title": "bash"},
    "tool.input.delta": {**ITEM, "text": '{"comm', "partial": {"command": "ls"}},
    "tool.running": {**ITEM, "title": "ls", "input": {"command": "ls"}},
    "tool.output.delta": {**ITEM, "from": 5, "text": "a.py\n", "elided": 100},
    "tool.ended": {
        **ITEM,
        "call": "c1",
        "name": "bash",
        "status": "skipped",
        "content": CONTENT,
        "details": None,
    },
    "edit.proposed": {**RUN, **EDIT},
    "edit.applied": {**RUN, **EDIT},
    "edit.conflict": {**RUN, **EDIT},
    "edit.rejected": {**RUN, **EDIT},
    "edit.undone": EDIT,
    "edit.saved": EDIT,
    "changes.updated": {**RUN, **COUNTS},
    "plan.updated": {**RUN, "plan": [{"text": "read", "status": "active"}]},
    "queue.changed": {"queue": [QUEUED], "paused": True},
    "permission.requested": {**RUN, "request": PERMISSION},
    "permission.resolved": {**RUN, "request": "p1", "option": "no", "by": "timeout"},
    "question.requested": {**RUN, "request": QUESTION},
    "question.resolved": {**RUN, "request": "q1", "by": "panel"},
    "compaction.started": {"reason": "manual"},
    "compaction.ended": {
        **RUN,
        "reason": "overflow",
        "summary": "Before this …",
        "tokensBefore": 30000,
        "tokensAfter": 4000,
        "aborted": False,
        "willRetry": True,
    },
    "retry.started": {**RUN, "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "error": ERROR},
    "retry.ended": {**RUN, "success": False, "attempt": 3, "error": ERROR},
    "checkpoint.created": {**RUN, "checkpoint": CHECKPOINT},
    "checkpoint.restored": {"checkpoint": CHECKPOINT},
    "model.changed": {"model": "lab/m", "thinking": "high", "source": "cycle"},
    "leaf.moved": {"leaf": "n1", "from": "n2"},
    "entry.labelled": {"entry": "n1", "label": None},
    "background.started": {**RUN, "command": BACKGROUND},
    "background.listening": {"id": "bg1", "ports": [5173]},
    "background.ended": {"id": "bg1", "exitCode": None, "signal": 15, "by": "user"},
    "task.created": {**RUN, "task": TASK},
    "task.updated": {"task": {**TASK, "state": "running", "activity": "read a.py"}},
    "task.ended": {"task": {**TASK, "state": "failed", "error": "no"}, "text": "I found"},
    "bash.started": {"command": "make"},
    "bash.output": {"from": 1, "text": "ok\n"},
    "bash.ended": {"exitCode": None, "output": "ok\n", "cancelled": True, "truncated": False},
    "notice": {"level": "info", "text": "The session file was repaired."},
    "error": {"error": ERROR},
    "extension.error": {"extension": "todo", "event": "tool_call", "error": "took too long"},
    **{
        f"ui.{name}": VIEW
        for name in (
            "select",
            "confirm",
            "input",
            "editor",
            "notify",
            "status",
            "widget",
            "title",
            "editorText",
        )
    },
}


def event(kind: str, **changes: object) -> dict:
    return {
        "seq": 7,
        "at": "2026-03-04T05:06:07.890Z",
        "type": kind,
        **FIELDS.get(kind, {}),
        **changes,
    }


def test_there_is_an_example_for_every_event() -> None:
    # Of every event that the core sends there is a sample in tests/events/test_codec.py, which fits the schema too.
    assert {*FIELDS, *NAMES.values()} == set(EVENTS)


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_an_event_fits_its_schema(kind: str) -> None:
    check_event(event(kind))


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_the_schema_leaves_room_for_fields_of_later_versions(kind: str) -> None:
    schema = {**SCHEMA["events"][kind], "$defs": SCHEMA["$defs"]}
    Draft202012Validator(schema).validate(event(kind, colour="red"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (event("run.finished"), "event: type must be a known type of event, got 'run.finished'"),
        ({"seq": 1}, "event: type must be a known type of event, got None"),
        (event("notice", level="loud"), "notice: level: 'loud' is not valid under any of"),
        (event("notice", colour="red"), "notice: Additional properties are not allowed ('colour'"),
        (
            event("run.started", message_id="m"),
            "run.started: Additional properties are not allowed ('message_id'",
        ),
        (event("thought.delta", item=None), "thought.delta: item: None is not of type 'string'"),
        (event("message.delta", at="today"), "message.delta: at: 'today' does not match"),
        (event("message.delta", seq="7"), "message.delta: seq: '7' is not of type 'integer'"),
        (event("message.delta", seq=7.0), "message.delta: seq: 7.0 is not of type 'integer'"),
        (event("message.delta", seq=-1), "message.delta: seq: -1 is less than the minimum of 0"),
        (
            event("turn.ended", usage={"tokens": {**TOKENS, "total": 12}}),
            "turn.ended: usage.tokens: Additional properties are not allowed ('total'",
        ),
        (
            event("run.ended", error={"kind": "Oops", "message": "m", "retryable": False}),
            "run.ended: error.kind: 'Oops' is not one of ['SessionNotFound'",
        ),
        (
            event(
                "message.ended", content=[{"type": "image", "mime": "m", "data": "", "uri": "u"}]
            ),
            "message.ended: content.0",
        ),
        (
            {"seq": 7, "at": "2026-03-04T05:06:07.890Z", "type": "notice", "text": "x"},
            "notice: 'level' is a required",
        ),
    ],
    ids=[
        "unknown type",
        "no type",
        "unknown word",
        "unknown field",
        "snake case",
        "null",
        "no time",
        "number as text",
        "fraction",
        "negative",
        "unknown field inside",
        "unknown kind",
        "two sources",
        "missing field",
    ],
)
def test_a_misfit_is_told_in_one_sentence(wrong: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=":") as caught:
        check_event(wrong)
    assert str(caught.value).startswith(sentence)
