"""Sets of tools: presets, names, and what is added to or taken from them."""

import pytest

from agent_core.kernel.errors import ToolSetInvalid
from agent_core.tools.presets import effective_set, preset

TASKS = ("task", "task_result", "task_list", "task_stop")
ALL = (
    "read",
    "write",
    "edit",
    "bash",
    "grep",
    "find",
    "ls",
    "todo",
    "ask",
    "background",
    "fetch",
    "web_search",
    "plan",
    *TASKS,
)
NOW = ("read", "write", "edit", "bash")


def test_by_default_all_tools_are_active() -> None:
    assert preset("default") == ALL
    assert effective_set("default", ALL) == ALL


def test_minimal_has_four() -> None:
    assert preset("minimal") == ("read", "write", "edit", "bash")


def test_readonly_has_four_that_change_nothing() -> None:
    assert preset("readonly") == ("read", "grep", "find", "ls")


@pytest.mark.parametrize(
    ("chosen", "known", "expected"),
    [
        ("default", NOW, NOW),
        ("readonly", NOW, ("read",)),
        ("default", (*NOW, "mine"), (*NOW, "mine")),
        ("minimal", (*NOW, "mine"), NOW),
        (["minimal", "mine"], (*NOW, "mine"), (*NOW, "mine")),
        ("bash, read", NOW, ("read", "bash")),
        (["bash", "read", "bash"], NOW, ("read", "bash")),
        (
            "-bash",
            ALL,
            (
                "read",
                "write",
                "edit",
                "grep",
                "find",
                "ls",
                "todo",
                "ask",
                "background",
                "fetch",
                "web_search",
                "plan",
                *TASKS,
            ),
        ),
        ("+mine", (*NOW, "mine"), (*NOW, "mine")),
        ("readonly +bash -ls", ALL, ("read", "bash", "grep", "find")),
        (
            ["default", "-write", "-edit"],
            ALL,
            (
                "read",
                "bash",
                "grep",
                "find",
                "ls",
                "todo",
                "ask",
                "background",
                "fetch",
                "web_search",
                "plan",
                *TASKS,
            ),
        ),
        ("minimal -ls", NOW, NOW),
        (
            "default -readonly",
            ALL,
            (
                "write",
                "edit",
                "bash",
                "todo",
                "ask",
                "background",
                "fetch",
                "web_search",
                "plan",
                *TASKS,
            ),
        ),
    ],
)
def test_words_are_read_from_left_to_right(chosen, known, expected) -> None:
    assert effective_set(chosen, known) == expected


@pytest.mark.parametrize("chosen", ["nonexistent", ["nonexistent"], "read +nothing", "Read", "+"])
def test_an_unknown_name_is_refused(chosen) -> None:
    with pytest.raises(ToolSetInvalid, match="there is no tool or preset"):
        effective_set(chosen, ALL)


@pytest.mark.parametrize("chosen", [[], "", "  ", ["", " "], "read -read", ["minimal", "-minimal"]])
def test_an_empty_set_is_refused(chosen) -> None:
    with pytest.raises(ToolSetInvalid):
        effective_set(chosen, ALL)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ToolSetInvalid, match="there is no preset 'nope'"):
        preset("nope")
