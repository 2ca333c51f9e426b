"""A thousand fields that no method has, misspelt or made up: each is refused."""

import random
from contextlib import suppress
from typing import Any

import pytest

from tests.support.hostile.misspelt import objects, with_wrong_key
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.methods import METHODS as SERVED, NOTIFICATIONS
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.parsing import parse

RANGE = {"start": {"line": 0, "character": 4}, "end": {"line": 2, "character": 0}}
CONFIG = {
    "model": "lab/m",
    "thinking": "high",
    "mode": "plan",
    "autoCompact": True,
    "steering": "all",
    "followUp": "all",
    "budgets": {"usd": 1, "tokens": 5, "turns": 2, "minutes": 3},
    "tools": ["read"],
}
CONTEXT = {
    "focus": {"uri": "file:///a", "version": 1, "selections": [RANGE], "visible": [RANGE]},
    "open": ["file:///a"],
}
CONTENT = [
    {"type": "text", "text": "x"},
    {"type": "selection", "uri": "file:///a", "version": 1, "range": RANGE, "text": "x"},
    {"type": "resource", "uri": "file:///a", "range": RANGE},
]
SAMPLES: dict[str, dict[str, Any]] = {
    "agent/session/open": {"session": "new", "folders": ["file:///w"], "config": CONFIG},
    "agent/session/configure": {"session": "s", "set": CONFIG},
    "agent/session/read": {"item": "i", "range": {"start": 0, "end": 4}, "part": "full"},
    "agent/session/navigate": {"target": "e", "summarize": True, "label": "x"},
    "agent/session/label": {"entry": "e", "label": "x"},
    "agent/session/rename": {"title": "x"},
    "agent/subscribe": {"partialResultToken": 1, "detail": "full"},
    "agent/prompt": {"content": CONTENT, "context": CONTEXT, "delivery": "auto", "wait": True},
    "agent/steer": {"content": CONTENT, "expectedRun": "r"},
    "agent/followUp": {"content": CONTENT, "messageId": "m"},
    "agent/queue/update": {"ops": [{"op": "replace", "queueId": "q", "content": CONTENT}]},
    "agent/run/retry": {"run": "r"},
    "agent/bash": {"command": "ls", "excludeFromContext": True},
    "agent/plan/respond": {"revision": 1, "sha256": "9f86d081884c", "answer": "reject"},
    "agent/background/move": {"item": "i"},
    "agent/background/stop": {"id": "bg1"},
    "agent/task/resume": {"id": "t1"},
    "agent/task/stop": {"id": "t1"},
    "agent/blob/read": {"blob": "0"},
    "agent/blob/store": {"uri": "file:///a.pdf", "size": 1},
    "agent/task/changes": {"id": "t1"},
    "agent/task/merge": {"id": "t1"},
    "agent/task/discard": {"id": "t1"},
    "agent/checkpoint/preview": {"checkpoint": "c", "scope": "files"},
    "agent/checkpoint/restore": {"checkpoint": "c", "scope": "files"},
    "agent/changes/resolve": {"items": [{"file": "file:///a", "action": "reject"}]},
    "agent/permission/respond": {"request": "p", "option": "allowOnce"},
    "agent/permission/rules": {"op": "list"},
    "agent/question/respond": {"request": "q", "answers": {"a": "b"}},
    "agent/model/cycle": {"direction": 1},
    "agent/command/complete": {"name": "x", "prefix": "y"},
    "agent/extension/press": {"key": "x"},
    "agent/extension/render": {"entry": "x"},
    "agent/trust": {"items": [{"folder": "file:///w", "trusted": True}]},
    "agent/ack": {"token": 1, "seq": 3},
    "agent/editorContext": CONTEXT,
}
FREE = ("answers",)
"""Objects whose keys are ids."""


def sample(method: str) -> dict[str, Any]:
    return SAMPLES.get(method, {"session": "s"} if "session" in _names(method) else {})


def _names(method: str) -> frozenset[str]:
    return frozenset(METHODS[method].params.model_fields)


def test_every_sample_is_right() -> None:
    for method in (*SERVED, *NOTIFICATIONS):
        _ = parse(METHODS[method].params, sample(method), method=method)


@pytest.mark.parametrize("seed", range(4))
def test_none_of_a_thousand_unknown_fields_is_accepted(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a fuzz that can be repeated
    methods = (*SERVED, *NOTIFICATIONS)
    known = frozenset(_every_field())
    accepted: list[tuple[str, str]] = []
    for _ in range(250):
        method = draw.choice(methods)
        document = sample(method)
        places = [one for one in objects(document) if not set(FREE) & set(one)]
        changed, wrong = with_wrong_key(document, draw.choice(places), known=known, draw=draw)
        with suppress(RpcError):
            _ = parse(METHODS[method].params, changed, method=method)
            accepted.append((method, wrong))
    assert accepted == []


def _every_field() -> set[str]:
    """Return the names of all fields: a wrong one must not be right somewhere else."""
    found: set[str] = set()
    for method in (*SERVED, *NOTIFICATIONS):
        params = METHODS[method].params
        params.model_rebuild()
        found.update(field.alias or name for name, field in params.model_fields.items())
    for document in SAMPLES.values():
        for place in objects(document):
            here: Any = document
            for step in place:
                here = here[step]
            found.update(here)
    return found
