"""A template is a file that stands for a name; what was written behind the name is never lost."""

from pathlib import Path

import pytest

from agent_core.resources.templates import Template, expand_template, read_template

PATH = Path("/c/prompts/fix.md")


def test_a_template_tells_what_it_is_for() -> None:
    text = "---\ndescription: Repair a thing\nargument-hint: '[thing]'\n---\nRepair $1.\n"
    read = read_template(text, PATH)
    assert read.problems == ()
    assert read.template == Template(
        name="fix", description="Repair a thing", argument_hint="[thing]", path=PATH
    )


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("\n\n  Repair it.  \nThen rest.", "Repair it."),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("", ""),
    ],
)
def test_else_its_first_line_does(body: str, description: str) -> None:
    template = read_template(body, PATH).template
    assert template is not None
    assert template.description == description


def test_broken_yaml_is_told_and_the_words_below_are_used() -> None:
    read = read_template("---\na: b: c\n---\nRepair it.", PATH)
    assert read.template is not None
    assert read.template.description == "Repair it."
    assert [(one.level, one.line, one.path) for one in read.problems] == [("warning", 2, PATH)]
    assert expand_template("---\na: b: c\n---\nRepair $1.", "it") == "Repair it."


@pytest.mark.parametrize("name", ["two words.md", ".md", "a\u202eb.md", "a\nb.md"])
def test_a_name_that_nobody_can_write_is_no_template(name: str) -> None:
    read = read_template("x", PATH.with_name(name))
    assert read.template is None
    assert [one.level for one in read.problems] == ["error"]
    assert "\n" not in read.problems[0].message


@pytest.mark.parametrize(
    ("body", "arguments", "words"),
    [
        ("Repair $1 and $2.", '"a b" c', "Repair a b and c."),
        ("Repair it.", "", "Repair it."),
        ("Repair it.", 'but not "this"', 'Repair it.\n\nbut not "this"'),
        ("Repair $@.", "", "Repair ."),
    ],
)
def test_what_was_written_gets_into_its_place_or_follows(
    body: str, arguments: str, words: str
) -> None:
    assert expand_template(f"---\ndescription: d\n---\n\n{body}\n\n", arguments) == words
