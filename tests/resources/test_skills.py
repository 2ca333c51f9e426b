"""A skill is a file that says what it is for; what is odd about it is told, and only without a description it is none."""

from pathlib import Path

import pytest

from agent_core.resources.skills import (
    MOST_DESCRIPTION,
    Skill,
    expand_skill,
    read_skill,
    skills_section,
)

PATH = Path("/p/.agents/skills/pdf-forms/SKILL.md")
TEXT = """\
---
name: pdf-forms
description: Fill in PDF forms.
  Use when there is a form.
license: MIT
compatibility: needs qpdf
metadata:
  author: me
allowed-tools: read bash
---

# Forms

See scripts/fill.py.
"""


def of(**fields: str) -> Skill:
    head = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in fields.items())
    read = read_skill(f"---\n{head}---\nbody\n", PATH)
    assert read.skill is not None
    return read.skill


def test_a_skill_is_read_with_all_that_it_says() -> None:
    read = read_skill(TEXT, PATH)
    assert read.problems == ()
    assert read.skill == Skill(
        name="pdf-forms",
        description="Fill in PDF forms. Use when there is a form.",
        path=PATH,
        license="MIT",
        compatibility="needs qpdf",
        allowed_tools=("read", "bash"),
    )


def test_without_a_name_it_has_that_of_its_folder_or_file() -> None:
    assert of(description="d").name == "pdf-forms"
    read = read_skill("---\ndescription: d\n---\n", PATH.with_name("notes.md"))
    assert read.skill is not None
    assert read.skill.name == "notes"


@pytest.mark.parametrize(
    "text", ["", "# Forms\n", "---\nname: x\n---\n", "---\ndescription: ' '\n---\n"]
)
def test_without_a_description_it_is_no_skill(text: str) -> None:
    read = read_skill(text, PATH)
    assert read.skill is None
    assert [(one.level, one.path) for one in read.problems] == [("error", PATH)]
    assert "no description" in read.problems[0].message
    assert read_skill(text, PATH.with_name("README.md")).problems == ()


def test_broken_yaml_makes_no_skill_and_is_named_with_its_line() -> None:
    read = read_skill("---\nname: x\ndescription: a: b\n---\nbody", PATH)
    assert read.skill is None
    assert [(one.level, one.line) for one in read.problems] == [("error", 3)]


@pytest.mark.parametrize("name", ["Forms", "a_b", "-a", "a-", "a--b", "a b", "ä", "x" * 65])
def test_an_odd_name_is_told_and_the_skill_is_used(name: str) -> None:
    read = read_skill(f"---\nname: {name!r}\ndescription: d\n---\n", PATH)
    assert read.skill is not None
    assert read.skill.name == name
    assert [one.level for one in read.problems] == ["warning"]


def test_a_long_description_is_cut_and_that_is_told() -> None:
    read = read_skill(f"---\ndescription: {'x' * 2_000}\n---\n", PATH)
    assert read.skill is not None
    assert len(read.skill.description) == MOST_DESCRIPTION
    assert [one.level for one in read.problems] == ["warning"]


def test_the_model_is_told_a_line_of_each_that_is_not_hidden() -> None:
    shown = of(name="a", description="Say <b> & go.")
    hidden = of(name="b", description="x", disable_model_invocation="true")
    section = skills_section([shown, hidden], tools=["read"])
    assert section.endswith(
        "<available_skills>\n"
        "  <skill>\n"
        "    <name>a</name>\n"
        "    <description>Say &lt;b&gt; &amp; go.</description>\n"
        "    <location>/p/.agents/skills/pdf-forms/SKILL.md</location>\n"
        "  </skill>\n"
        "</available_skills>"
    )
    assert skills_section([hidden], tools=["read"]) == ""
    assert skills_section([], tools=["read"]) == ""


@pytest.mark.parametrize(
    ("tools", "told"), [(["bash"], True), (["edit", "grep"], False), ([], False)]
)
def test_a_model_that_cannot_read_them_is_not_told(tools: list[str], told: bool) -> None:
    assert bool(skills_section([of(description="d")], tools=tools)) is told


def test_what_hides_in_a_description_is_shown() -> None:
    section = skills_section([of(description='"go\\u202eon\\u200b"')], tools=["read"])
    assert "\u202e" not in section
    assert "<U+202E>" in section.replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.parametrize(
    ("arguments", "end"), [("", "</skill>"), ("form.pdf now", "</skill>\n\nform.pdf now")]
)
def test_a_skill_that_is_called_is_written_out_with_its_place(arguments: str, end: str) -> None:
    skill = of(name="pdf-forms", description="d")
    assert expand_skill(skill, TEXT, arguments) == (
        '<skill name="pdf-forms" location="/p/.agents/skills/pdf-forms/SKILL.md">\n'
        "References are relative to /p/.agents/skills/pdf-forms.\n\n"
        f"# Forms\n\nSee scripts/fill.py.\n{end}"
    )
