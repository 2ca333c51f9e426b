"""Literal dialogs, rules, edits and change sets are read, and written back as they came."""

import pytest

from tests.server.wire.wire_samples import AT, CHANGES, QUESTION
from tiller_server.lsp.wire.base import WireModel, dump
from tiller_server.lsp.wire.changes import ChangeSet, EditRequest, EditResult
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.permissions import (
    PermissionAnswer,
    PermissionRequest,
    Question,
    QuestionAnswer,
    Rule,
)

RULE = {
    "id": "rule-1",
    "tool": "bash",
    "argvPrefix": ["npm", "test"],
    "verdict": "allow",
    "scope": "project",
    "match": ["npm test"],
    "notMatch": ["npm publish"],
}
PERMISSION = {
    "request": "p1",
    "session": "s1",
    "run": "r1",
    "item": "i1",
    "title": "Run npm test",
    "risk": "medium",
    "since": AT,
    "subject": {
        "type": "command",
        "argv": ["npm", "test"],
        "command": "npm test > out.txt",
        "cwd": "file:///w",
        "plain": False,
        "sandbox": "none",
        "parsed": [{"argv": ["npm", "test"], "key": "npm test", "writes": ["out.txt"]}],
    },
    "options": [
        {"id": "once", "kind": "allowOnce", "label": "Allow once"},
        {"id": "project", "kind": "allowProject", "label": "Always here", "rule": RULE},
        {"id": "no", "kind": "rejectOnce", "label": "No"},
        {"id": "mail", "kind": "_askMyBoss", "label": "Ask my boss"},
    ],
    "default": "no",
}

EXAMPLES: list[tuple[type[WireModel], dict]] = [
    (ChangeSet, CHANGES),
    (PermissionRequest, PERMISSION),
    (
        PermissionRequest,
        {**PERMISSION, "expires": AT, "subject": {"type": "edit", "changeSet": "c1"}},
    ),
    (
        PermissionRequest,
        {**PERMISSION, "subject": {"type": "outsideRoot", "uri": "file:///etc/hosts"}},
    ),
    (
        PermissionRequest,
        {
            **PERMISSION,
            "subject": {
                "type": "trust",
                "folder": "file:///w",
                "added": [".mcp.json"],
                "removed": [],
                "changed": ["AGENTS.md"],
                "difference": "--- trusted/AGENTS.md",
            },
        },
    ),
    (
        PermissionRequest,
        {
            **PERMISSION,
            "subject": {
                "type": "server",
                "server": "tickets",
                "way": "npx tickets (contained like commands, with the network)",
                "source": "file:///home/me/.config/tiller/mcp.json",
                "added": ["open"],
                "removed": [],
                "changed": [],
                "unasked": ["open"],
                "difference": '{"name": "open"}',
            },
        },
    ),
    (PermissionRequest, {**PERMISSION, "subject": {"type": "_launch", "missile": 3}}),
    (PermissionAnswer, {"option": "once", "note": "go on"}),
    (Question, QUESTION),
    (QuestionAnswer, {"answers": {"db": "pg", "sure": True, "tags": ["a", "b"]}}),
    (QuestionAnswer, {"cancelled": True}),
    (Rule, RULE),
    (
        EditRequest,
        {
            "edit": {
                "id": "e1",
                "session": "s1",
                "run": "r1",
                "toolCall": "t1",
                "label": "Fix the name",
            },
            "workspaceEdit": {"documentChanges": [{"textDocument": {"version": 3}, "edits": []}]},
            "pre": [{"uri": "file:///w/a.py", "version": 3, "sha256": "ff", "exists": True}],
            "save": "ifWasClean",
            "review": "none",
            "undo": "oneStep",
        },
    ),
    (
        EditResult,
        {
            "documents": [
                {"uri": "file:///w/a.py", "status": "applied", "version": 4, "saved": True},
                {"uri": "file:///w/b.py", "status": "stale", "why": "version 5"},
            ],
            "changedByUser": False,
        },
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
