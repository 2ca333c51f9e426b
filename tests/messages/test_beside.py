"""What an editor sends along with a prompt is told from the user's own words."""

import pytest

from agent_core.messages import Text
from agent_core.messages.attachments import attachment_name, user_texts
from tiller_server.lsp.encode.content import fenced, to_content
from tiller_server.lsp.wire.blocks import (
    Diagnostic,
    DiagnosticsBlock,
    DiffBlock,
    Position,
    Range,
    ResourceBlock,
    SelectionBlock,
)

URI = "file:///w/my%20shop/cart.py"
PLACE = Range(start=Position(line=1, character=0), end=Position(line=3, character=0))


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (ResourceBlock(uri=URI), "cart.py"),
        (ResourceBlock(uri=URI, range=PLACE), "cart.py"),
        (ResourceBlock(uri=URI, text="x\ny"), "cart.py"),
        (SelectionBlock(uri=URI, version=1, range=PLACE, text="</selection>\n"), "cart.py"),
        (DiagnosticsBlock(uri=URI, items=[Diagnostic(range=PLACE, message="bad")]), "cart.py"),
        (DiffBlock(patch="-a\n+b"), "diff"),
    ],
    ids=["file", "lines", "text", "selection", "problems", "diff"],
)
def test_what_the_server_writes_for_the_model_is_none_of_the_users_words(block, name) -> None:
    (written,) = to_content([block])
    assert isinstance(written, Text)
    assert attachment_name(written.text) == name
    assert user_texts([written.text, "look at this"]) == ["look at this"]
    assert user_texts([written.text]) == [name]


def test_what_the_editor_shows_is_never_a_title() -> None:
    assert user_texts([fenced("editor-context", None, "focus: shop/cli.py")]) == []


@pytest.mark.parametrize(
    "text",
    [
        "<b>bold</b>",
        "<resource> is a tag",
        "The user points at nothing",
        "<diff>\nx\n</diff> and more",
    ],
)
def test_words_that_only_look_like_it_are_the_users_own(text: str) -> None:
    assert attachment_name(text) is None
