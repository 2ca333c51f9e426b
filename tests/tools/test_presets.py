"""Sets of tools: presets, names, and what is added to or taken from them."""

import pytest

from agent_core.kernel.errors import ToolSetInvalid
from agent_core.tools.presets import effective_set, preset
from tests.support.workspace.default_tools import ALL_TOOLS, without

NOW = ("read", "write", "edit", "bash")


def test_by_default_all_tools_are_active() -> None:
    assert preset("default") == ALL_TOOLS
    assert effective_set("default", ALL_TOOLS) == ALL_TOOLS


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
            ALL_TOOLS,
            without(ALL_TOOLS, ["bash"]),
        ),
        ("+mine", (*NOW, "mine"), (*NOW, "mine")),
        ("readonly +bash -ls", ALL_TOOLS, ("read", "bash", "grep", "find")),
        (
            ["default", "-write", "-edit"],
            ALL_TOOLS,
            without(ALL_TOOLS, ["write", "edit"]),
        ),
        ("minimal -ls", NOW, NOW),
        (
            "default -readonly",
            ALL_TOOLS,
            without(ALL_TOOLS, ["read", "grep", "find", "ls"]),
        ),
    ],
)
def test_words_are_read_from_left_to_right(chosen, known, expected) -> None:
    assert effective_set(chosen, known) == expected


@pytest.mark.parametrize("chosen", ["nonexistent", ["nonexistent"], "read +nothing", "Read", "+"])
def test_an_unknown_name_is_refused(chosen) -> None:
    with pytest.raises(ToolSetInvalid, match="there is no tool or preset"):
        effective_set(chosen, ALL_TOOLS)


@pytest.mark.parametrize("chosen", [[], "", "  ", ["", " "], "read -read", ["minimal", "-minimal"]])
def test_an_empty_set_is_refused(chosen) -> None:
    with pytest.raises(ToolSetInvalid):
        effective_set(chosen, ALL_TOOLS)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ToolSetInvalid, match="there is no preset 'nope'"):
        preset("nope")
