"""Literal messages of the protocol are read, and written back as they came."""

import pytest

from tests.server.wire.wire_samples import AT, CHANGES, QUESTION, RANGE
from tiller_server.lsp.wire.accounts import StatusResult
from tiller_server.lsp.wire.base import WireModel, dump
from tiller_server.lsp.wire.capabilities import AgentClientCaps, AgentOptions, AgentServerCaps
from tiller_server.lsp.wire.errors import ErrorData
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.runs import (
    CompactResult,
    PromptAccepted,
    PromptParams,
    RunCancelResult,
    RunResult,
)
from tiller_server.lsp.wire.session import SessionInfo, Snapshot
from tiller_server.lsp.wire.sessions import SessionReadResult
from tiller_server.lsp.wire.subscription import FRAMES, SubscribeParams, SubscribeResult

TOKENS = {"in": 1200, "out": 80, "cacheRead": 1000, "cacheWrite": 0, "reasoning": 16}
USAGE = {
    "context": {"used": 1280, "size": 32000},
    "tokens": TOKENS,
    "cost": {"amount": 0.0125, "currency": "USD", "estimated": True},
    "budget": {"used": 0.0125, "limit": 2},
}
CONFIG = {
    "model": "lab/vendor/m:latest",
    "thinking": "medium",
    "mode": "ask",
    "autoCompact": True,
    "steering": "one-at-a-time",
    "followUp": "all",
    "tools": ["read", "write", "edit", "bash"],
    "offerBranchSummary": True,
}
QUEUED = {
    "queueId": "q1",
    "delivery": "followUp",
    "content": [{"type": "text", "text": "and then the docs"}],
    "at": AT,
}
ITEMS = [
    {
        "item": "i1",
        "run": "r1",
        "kind": "message",
        "role": "user",
        "content": [{"type": "text", "text": "go"}],
        "delivery": "prompt",
    },
    {"item": "i2", "kind": "thought", "text": "hm"},
    {
        "item": "i3",
        "at": AT,
        "kind": "tool",
        "call": "t1",
        "name": "bash",
        "input": {"command": "ls"},
    },
    {
        "item": "i4",
        "kind": "edit",
        "edit": "e1",
        "call": "t2",
        "documents": [{"uri": "file:///w/a.py", "status": "applied", "saved": False, "version": 3}],
    },
    {"item": "i5", "kind": "summary", "summary": "Before this …", "tokensBefore": 30000},
]
SNAPSHOT = {
    "session": "s1",
    "epoch": "e1",
    "seq": 42,
    "state": "requiresAction",
    "activity": {
        "run": "r1",
        "retry": {"attempt": 1, "maxAttempts": 3, "delayMs": 2000},
        "bash": {"command": "make"},
    },
    "run": {"id": "r1", "startedAt": AT, "items": ITEMS},
    "queue": [QUEUED],
    "pending": [QUESTION],
    "config": CONFIG,
    "usage": USAGE,
    "roots": [{"uri": "file:///w", "name": "w", "primary": True, "trusted": False}],
    "trust": [{"folder": "file:///w", "trusted": False}],
    "changes": {"files": 1, "additions": 3, "deletions": 2, "unreviewed": 1},
    "checkpoints": {"count": 1, "latest": "cp1"},
    "clients": [{"role": "editor", "name": "Neovim"}],
    "history": {"cursor": None},
}


EXAMPLES: list[tuple[type[WireModel], dict]] = [
    (
        AgentClientCaps,
        {
            "v": 1,
            "events": {"channel": "progress", "ack": {}, "detail": ["full", "status"]},
            "permission": {"note": {}},
            "question": {"form": {}},
            "edit": {
                "preconditions": {},
                "review": ["inline", "preview", "_mine"],
                "perDocumentResult": {},
                "save": {},
            },
            "documents": {"save": {}, "read": {}, "dirty": {}},
            "diagnostics": {"versions": {}},
            "lspProxy": {},
            "tools": {},
            "diffView": {},
            "notice": {},
        },
    ),
    (
        AgentOptions,
        {
            "clientId": "window-7",
            "client": {"name": "VS Code", "version": "1.99", "role": "panel"},
            "session": {"open": {"id": "s1"}, "lifetime": "connection"},
            "edit": {"openClean": "buffer", "review": "hints", "saveBarrier": "ask"},
            "permission": {"mode": "plan", "fallback": "deny", "timeoutS": 300},
            "plain": {
                "lens": True,
                "actions": False,
                "chatFile": ".tiller/chat.md",
                "hints": True,
            },
            "budgets": {"usd": 1.5, "tokens": 100000, "turns": 20, "minutes": 10},
            "uriMap": [{"client": "vscode-remote://wsl+Ubuntu/", "server": "file:///"}],
        },
    ),
    (AgentOptions, {"session": {"open": "latest"}}),
    (
        AgentServerCaps,
        {
            "v": 1,
            "protocol": "1.0",
            "server": {"name": "tiller", "version": "0.1.0"},
            "methods": ["agent/prompt"],
            "events": ["run.started"],
            "limits": {"maxFrameBytes": 33554432, "maxPromptBytes": 1048576, "queue": 32},
        },
    ),
    (
        PromptParams,
        {
            "session": "s1",
            "messageId": "m1",
            "content": [{"type": "text", "text": "The tests fail."}],
            "context": {
                "focus": {
                    "uri": "file:///w/a.py",
                    "version": 3,
                    "selections": [RANGE],
                    "visible": [RANGE],
                    "mode": "insert",
                },
                "open": ["file:///w/a.py"],
                "dirty": ["file:///w/a.py"],
            },
            "delivery": "auto",
            "ifIdle": "start",
            "expectedRun": "r1",
            "wait": True,
            "workDoneToken": 7,
            "partialResultToken": "tok",
        },
    ),
    (PromptAccepted, {"accepted": "started", "run": "r1", "messageId": "m1", "seq": 3}),
    (
        SubscribeParams,
        {
            "session": "s1",
            "partialResultToken": "tok",
            "epoch": "e1",
            "from": 0,
            "detail": "status",
            "flushMs": 16,
            "ack": {},
        },
    ),
    (SubscribeResult, {"reason": "lagging", "last": 900}),
    (
        RunCancelResult,
        {
            "status": "alreadyEnded",
            "seq": 5,
            "killed": [],
            "survivors": [{"pid": 99, "cmd": "yes"}],
            "returned": [[{"type": "text", "text": "a"}], []],
        },
    ),
    (CompactResult, {"compaction": "k1", "seq": 12}),
    (CompactResult, {"compaction": None, "why": "Nothing to compact."}),
    (
        RunResult,
        {
            "run": "r1",
            "status": "failed",
            "message": "I could not.",
            "usage": USAGE,
            "changes": CHANGES,
            "findings": [
                {
                    "uri": "file:///w/a.py",
                    "diagnostic": {
                        "range": RANGE,
                        "message": "unused",
                        "severity": 2,
                        "code": "F401",
                        "source": "tiller",
                        "codeDescription": {"href": "https://example.org"},
                        "tags": [1],
                    },
                }
            ],
            "error": {
                "kind": "RateLimited",
                "retryable": True,
                "retryAfterMs": 90000,
                "provider": "lab",
                "httpStatus": 429,
                "message": "The provider asks to wait 90 s.",
            },
        },
    ),
    (
        ErrorData,
        {
            "kind": "RunMismatch",
            "retryable": False,
            "session": "s1",
            "expected": "r1",
            "actual": "r2",
        },
    ),
    (ErrorData, {"kind": "StaleDocument", "retryable": True, "documents": ["file:///w/a.py"]}),
    (Snapshot, SNAPSHOT),
    (SessionReadResult, {"items": ITEMS, "prev": "c0"}),
    (
        SessionInfo,
        {
            "session": "s1",
            "title": "Names",
            "workspace": "file:///w",
            "created": AT,
            "modified": "2026-03-04T05:06:07+02:00",
            "messages": 4,
            "parent": "s0",
            "preview": "The tests fail.",
        },
    ),
    (
        StatusResult,
        {
            "daemon": {"pid": 4711, "startedAt": AT, "durable": False},
            "sessions": [
                {"session": "s1", "workspace": "file:///w", "state": "idle", "clients": 1}
            ],
            "auth": [{"provider": "lab", "state": "ok", "source": "models.json"}],
            "versions": {"server": "0.1.0", "protocol": "1.0"},
            "quirks": ["singleDialog"],
        },
    ),
    (
        FRAMES["agent/events"],
        {
            "kind": "agent/events",
            "session": "s1",
            "epoch": "e1",
            "from": 3,
            "to": 5,
            "events": [
                {"seq": 5, "from": 3, "at": AT, "type": "message.delta", "item": "i", "text": "hi"}
            ],
        },
    ),
    (
        FRAMES["agent/snapshot"],
        {
            "kind": "agent/snapshot",
            "session": "s1",
            "epoch": "e1",
            "seq": 42,
            "snapshot": SNAPSHOT,
        },
    ),
    (
        FRAMES["agent/gap"],
        {"kind": "agent/gap", "session": "s1", "epoch": "e1", "from": 6, "to": 99},
    ),
    (
        FRAMES["agent/heartbeat"],
        {"kind": "agent/heartbeat", "session": "s1", "epoch": "e1", "seq": 99},
    ),
]


@pytest.mark.parametrize(
    ("model", "message"),
    EXAMPLES,
    ids=[f"{model.__name__}-{number}" for number, (model, _) in enumerate(EXAMPLES)],
)
def test_a_message_is_read_and_written_back_as_it_came(
    model: type[WireModel], message: dict
) -> None:
    assert dump(parse(model, message)) == message


def test_the_smallest_prompt_is_enough() -> None:
    method = METHODS["agent/prompt"]
    read = parse(method.params, {"content": [{"type": "text", "text": "go"}], "wait": True})
    assert dump(read) == {"content": [{"type": "text", "text": "go"}], "wait": True}
