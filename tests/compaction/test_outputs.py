"""Which tool output is cut when there must be room, and how."""

from agent_core.compaction import cut_outputs, estimate_message
from agent_core.kernel import EntryId, ToolCallId
from agent_core.messages import Image, Text, ToolResultMessage, text_of
from agent_core.transcript import AnyEntry, ContextEditEntry
from tests.support.session.entries import AT_MS, assistant, call, chain, compaction, result, user

BIG = "x" * 40_000
"""Ten thousand tokens."""


def test_the_oldest_output_is_cut_first_and_no_more_than_is_needed() -> None:
    path = chain(user("go"), *[assistant(call("read")), result(BIG)] * 3)
    assert [one.target for one in cut_outputs(path, free_tokens=9_000)] == ["e3"]
    assert [one.target for one in cut_outputs(path, free_tokens=15_000)] == ["e3", "e5"]
    assert [one.target for one in cut_outputs(path, free_tokens=10**6)] == ["e3", "e5", "e7"]
    assert cut_outputs(path, free_tokens=0) == ()


def test_its_beginning_stays_and_says_what_is_gone() -> None:
    (cut,) = cut_outputs(chain(assistant(call("read")), result(BIG)), free_tokens=1)
    text = text_of(cut.content)
    assert text.startswith("x" * 1_000 + "\n[… 39000 more characters cut to make room;")
    assert "call the tool again" in text
    assert cut.saved_tokens > 9_000


def test_pictures_go_too() -> None:
    seen = ToolResultMessage(
        call_id=ToolCallId("c1"),
        tool_name="read",
        content=(Text(text="a plan"), Image(mime="image/png", data="AAAA")),
        at_ms=AT_MS,
    )
    (cut,) = cut_outputs(chain(assistant(call("read")), seen), free_tokens=1)
    assert text_of(cut.content).startswith("a plan\n[… 1 pictures cut")
    assert cut.saved_tokens > 1_000


def test_words_and_short_outputs_are_never_cut() -> None:
    path = chain(user(BIG), assistant(BIG, call("read")), result("x" * 1_200))
    assert cut_outputs(path, free_tokens=10**6) == ()


def test_what_the_model_does_not_see_any_more_is_left_alone() -> None:
    path: list[AnyEntry] = [
        *chain(user("go"), assistant(call("read")), result(BIG)),
        compaction("c", parent="e3", first_kept="c"),
    ]
    assert cut_outputs(path, free_tokens=10**6) == ()


def test_an_output_is_not_cut_twice() -> None:
    path = chain(assistant(call("read")), result(BIG))
    (cut,) = cut_outputs(path, free_tokens=1)
    edit = ContextEditEntry(
        id=EntryId("x"),
        parent=EntryId("e2"),
        at_ms=AT_MS,
        target=cut.target,
        replacement={"content": [{"type": "text", "text": text_of(cut.content)}]},
    )
    assert cut_outputs([*path, edit], free_tokens=10**6) == ()
    assert estimate_message(result(text_of(cut.content))) < 300
