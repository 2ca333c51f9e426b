"""The tree of files that other programs wrote: odd parents make roots, and nothing loops."""

import pytest

from agent_core.kernel import EntryId
from agent_core.messages import BashMessage, Text
from agent_core.session.history.entries import shown_from, tree_nodes
from agent_core.transcript import (
    AnyEntry,
    CustomMessageEntry,
    ModelChange,
    Transcript,
    UnknownEntry,
)
from tests.support.session.entries import AT_MS, assistant, compaction, entry, result, user


def hidden(entry_id: str, *, parent: str | None) -> ModelChange:
    above = None if parent is None else EntryId(parent)
    return ModelChange(id=EntryId(entry_id), parent=above, at_ms=AT_MS, provider="p", model="m")


def said(entry_id: str, *, parent: str | None) -> AnyEntry:
    return entry(entry_id, user(entry_id), parent=parent)


@pytest.mark.parametrize(
    ("entries", "parents"),
    [
        ([said("a", parent=None), said("b", parent="a")], {"a": None, "b": "a"}),
        ([said("a", parent="gone"), said("b", parent="a")], {"a": None, "b": "a"}),
        ([said("a", parent="a")], {"a": None}),
        (
            [
                hidden("m", parent=None),
                said("a", parent="m"),
                hidden("n", parent="a"),
                hidden("o", parent="n"),
                said("b", parent="o"),
            ],
            {"a": None, "b": "a"},
        ),
        ([said("b", parent="a"), said("a", parent=None)], {"b": "a", "a": None}),
        (
            [said("b", parent="m"), hidden("m", parent="a"), said("a", parent=None)],
            {"b": "a", "a": None},
        ),
        ([said("a", parent="b"), said("b", parent="a")], {"a": "b", "b": "a"}),
        ([hidden("m", parent="n"), hidden("n", parent="m"), said("a", parent="n")], {"a": None}),
    ],
    ids=[
        "plain",
        "orphan",
        "its-own-parent",
        "hidden-between",
        "parent-behind-its-child",
        "hidden-parent-behind-its-child",
        "circle",
        "hidden-circle",
    ],
)
def test_an_entry_stands_below_the_nearest_one_that_is_shown(
    entries: list[AnyEntry], parents: dict[str, str | None]
) -> None:
    assert {node.entry: node.parent for node in tree_nodes(Transcript(entries))} == parents


def test_what_is_shown_is_what_people_and_programs_and_tools_said_and_the_summaries() -> None:
    bash = BashMessage(
        command="ls -l", output="a", exit_code=0, cancelled=False, truncated=False, at_ms=AT_MS
    )
    program = CustomMessageEntry(
        id=EntryId("p"),
        parent=EntryId("b"),
        at_ms=AT_MS,
        custom_type="lint",
        content=(Text(text="2\nfaults"),),
    )
    later = UnknownEntry(
        id=EntryId("x"), parent=EntryId("p"), at_ms=AT_MS, raw={"type": "of_tomorrow"}
    )
    transcript = Transcript(
        [
            entry("u", user("hi")),
            entry("a", assistant("ho"), parent="u"),
            entry("t", result("out"), parent="a"),
            entry("b", bash, parent="t"),
            program,
            later,
            compaction("c", parent="x", first_kept="b", summary="## Goal\nall"),
        ]
    )
    assert [(one.kind, one.role, one.preview) for one in tree_nodes(transcript)] == [
        ("message", "user", "hi"),
        ("message", "assistant", "ho"),
        ("message", "toolResult", "out"),
        ("message", "bashExecution", "ls -l"),
        ("custom_message", None, "2 faults"),
        ("compaction", None, "## Goal all"),
    ]
    assert shown_from(transcript, EntryId("x")) == "p"
    assert shown_from(transcript, None) is None
