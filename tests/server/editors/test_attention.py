"""What the model is told of an editor: the workspace's own files, in lines that people count."""

from pathlib import Path
from typing import Any

import pytest

from tiller_server.lsp.editors.editor_context import EditorContextTracker, describe_context
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.runs import EditorContext

ROOT, OTHER = Path("/w"), Path("/w2")


def span(first: int, last: int, *, char: int = 0) -> dict[str, Any]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": char}}


def context(**members: Any) -> EditorContext:
    return parse(EditorContext, {"open": [], **members}, method="agent/editorContext")


def focus(uri: str = "file:///w/a.py", **members: Any) -> dict[str, Any]:
    return {"uri": uri, "version": 1, "selections": [], "visible": [], **members}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, None),
        ({"open": ["untitled:1", "file:///etc/passwd", "file:///w/../etc/x"]}, None),
        ({"focus": focus("file:///home/u/.ssh/config")}, None),
        ({"focus": focus()}, "focus: a.py"),
        (
            {"focus": focus(selections=[span(0, 0)], visible=[span(0, 39)])},
            "focus: a.py (cursor in line 1; visible: lines 1 to 40)",
        ),
        (
            {"focus": focus(selections=[span(2, 6), span(9, 9, char=3)])},
            "focus: a.py (selected: lines 3 to 7; selected: in line 10)",
        ),
        (
            {"open": ["file:///w/a.py", "file:///w2/b.py"], "dirty": ["file:///w/x/%C3%A9.py"]},
            "unsaved: x/é.py\nopen: a.py, /w2/b.py",
        ),
        ({"open": ["file:///w/a%0Ab"]}, "open: a b"),
        (
            {"open": [f"file:///w/{at}" for at in range(32)]},
            f"open: {', '.join(map(str, range(30)))} and 2 more",
        ),
    ],
)
def test_the_words(given: dict[str, Any], words: str | None) -> None:
    assert describe_context(context(**given), roots=(ROOT, OTHER)) == words


async def test_a_newer_context_wakes_who_waits_and_tells_a_new_focus_once() -> None:
    attention = EditorContextTracker()
    assert not attention.is_inserting("file:///w/a.py")
    assert attention.take(context(focus=focus(mode="insert"))) == "file:///w/a.py"
    assert attention.take(context(focus=focus(mode="insert"))) is None
    assert attention.is_inserting("file:///w/a.py")
    assert not attention.is_inserting("file:///w/b.py")
    await attention.changed(timeout_s=0)
    attention.take(context())
    assert not attention.is_inserting("file:///w/a.py")


def test_what_a_session_was_told_is_no_news_to_it() -> None:
    attention = EditorContextTracker()
    assert attention.news_for("s", "words") == "words"
    attention.mark_sent("s", "words")
    assert attention.news_for("s", "words") is None
    assert attention.news_for("other", "words") == "words"
    assert attention.news_for("s", "other words") == "other words"
