"""What stands between dashes at the top of a file is words and nothing else; broken YAML is named with its line."""

import pytest

from agent_core.resources.skills import MOST_CHARS, split_frontmatter


def test_words_are_what_was_written() -> None:
    front = split_frontmatter(
        "---\nname: fix\nversion: 1.0\nday: 2026-13-45\nhidden: yes\nallowed-tools: [read, bash]\n"
        "metadata:\n  author: me\n---\n\nDo it.\n"
    )
    assert front.fields == {
        "name": "fix",
        "version": "1.0",
        "day": "2026-13-45",
        "hidden": "yes",
        "allowed-tools": ("read", "bash"),
        "metadata": {"author": "me"},
    }
    assert front.body == "\nDo it.\n"
    assert (front.text("name"), front.text("metadata"), front.text("none")) == ("fix", "", "")
    assert front.is_on("hidden")
    assert not front.is_on("name")
    assert front.string_list("allowed-tools") == ("read", "bash")


def test_words_may_stand_in_a_line() -> None:
    front = split_frontmatter("---\nallowed-tools: read, bash grep\n---\n")
    assert front.string_list("allowed-tools") == ("read", "bash", "grep")


@pytest.mark.parametrize(
    "text", ["", "Do it.\n", "# ---\n", " ---\na: b\n---\n", "----\na: b\n----\n"]
)
def test_without_dashes_on_the_first_line_all_is_body(text: str) -> None:
    front = split_frontmatter(text)
    assert (front.body, dict(front.fields), front.problem) == (text, {}, "")


@pytest.mark.parametrize("text", ["---\n---\nbody", "---  \n# only a remark\n--- \nbody"])
def test_nothing_between_dashes_is_no_problem(text: str) -> None:
    front = split_frontmatter(text)
    assert (front.body, dict(front.fields), front.problem) == ("body", {}, "")


@pytest.mark.parametrize(
    ("yaml", "says", "line"),
    [
        ("name: a: b", "mapping values are not allowed", 2),
        ("a: b\n\tc: d", "cannot start any token", 3),
        ("a: [1, 2", "expected", 2),
        ("a: 'b", "found unexpected end", 2),
        ("- a\n- b", "no list of `name: value`", 2),
        ("just words", "no list of `name: value`", 2),
        ("a: *nobody", "undefined alias", 2),
        ("a: \x00", "", 1),
        ("a: " + "[" * 5_000, "", None),
        ("a: " + "x" * MOST_CHARS, "longer than", 1),
    ],
)
def test_broken_yaml_is_named_with_its_line(yaml: str, says: str, line: int | None) -> None:
    front = split_frontmatter(f"---\n{yaml}\n---\nbody\n")
    assert front.problem
    assert says in front.problem
    assert "\n" not in front.problem
    assert front.body == "body\n"
    assert dict(front.fields) == {}
    assert line is None or front.problem_line == line


def test_dashes_that_nothing_ends_are_a_problem_and_lose_nothing() -> None:
    front = split_frontmatter("---\nname: fix\n")
    assert front.body == "---\nname: fix\n"
    assert "no second one" in front.problem


def test_no_tag_makes_an_object() -> None:
    front = split_frontmatter("---\na: !!python/object/apply:os.system [true]\nb: !!int x\n---\n")
    assert dict(front.fields) == {"a": ("true",), "b": "x"}
