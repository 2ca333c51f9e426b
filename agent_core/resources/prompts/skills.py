"""Skills: folders with a SKILL.md. The model sees its description and reads the rest on demand. Pure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import for_model, one_line
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.prompts.frontmatter import split_frontmatter

SKILL_FILE: Final = "SKILL.md"
MOST_NAME: Final = 64
MOST_DESCRIPTION: Final = 1024
NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PREFIX: Final = "skill:"
LEAD: Final = (
    "A skill is a file of instructions for one kind of task. When a task is what a skill's description says, read the file "
    "at its location first, whole, and do as it says. Paths in a skill are relative to the folder of its file."
)
READERS: Final = frozenset({"read", "bash"})
"""Without one of these tools the model could not read a skill."""


class Skill(Value, frozen=True, kw_only=True):
    """One skill."""

    name: str
    description: str
    path: Path
    """Its file."""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    """Informative, not enforced; the permission policy decides which tools may run."""
    is_hidden: bool = False
    """The model is not told of it; people can still call it."""

    @property
    def folder(self) -> Path:
        """The folder that paths in the skill are relative to."""
        return self.path.parent


class ReadSkill(Value, frozen=True, kw_only=True):
    """Result of reading a file; without a skill, `problems` has the reason if the file should have been one."""

    skill: Skill | None
    problems: tuple[LoadProblem, ...] = ()


def read_skill(text: str, path: Path) -> ReadSkill:
    """Read a skill's file: `SKILL.md`, or any other Markdown file that describes itself as one."""
    frontmatter = split_frontmatter(text)
    is_named = path.name == SKILL_FILE
    if frontmatter.problem:
        return _none(
            path,
            f"{frontmatter.problem}; the skill is left out",
            frontmatter.problem_line,
            is_named,
        )
    name = one_line(frontmatter.text("name")) or (path.parent.name if is_named else path.stem)
    description = " ".join(frontmatter.text("description").split())
    if not description:
        return _none(path, "it has no description; the skill is left out", 1, is_named)
    skill = Skill(
        name=name,
        description=description,
        path=path,
        license=frontmatter.text("license"),
        compatibility=frontmatter.text("compatibility"),
        allowed_tools=frontmatter.string_list("allowed-tools"),
        is_hidden=frontmatter.is_on("disable-model-invocation"),
    )
    return _checked(skill)


def _none(path: Path, message: str, line: int | None, is_named: bool) -> ReadSkill:  # noqa: FBT001 - a fact, not a choice
    problem = LoadProblem(message=message, path=path, line=line, level="error")
    # A README beside skills is no skill, and nothing is wrong with it.
    return ReadSkill(skill=None, problems=(problem,) if is_named else ())


def _checked(skill: Skill) -> ReadSkill:
    wrong: list[str] = []
    if len(skill.name) > MOST_NAME:
        wrong.append(f"its name has more than {MOST_NAME} characters")
    if not NAME.fullmatch(skill.name):
        wrong.append(
            f"its name {skill.name[:MOST_NAME]!r} should be of a-z, 0-9 and single hyphens between them"
        )
    if len(skill.description) > MOST_DESCRIPTION:
        wrong.append(f"its description is cut after {MOST_DESCRIPTION} characters")
        skill = replace(skill, description=f"{skill.description[: MOST_DESCRIPTION - 1]}…")
    problems = tuple(LoadProblem(message=one, path=skill.path, line=1) for one in wrong)
    return ReadSkill(skill=skill, problems=problems)


def skills_section(skills: Sequence[Skill], *, tools: Sequence[str]) -> str:
    """Write what the system prompt says of skills; empty when there is nothing to say, or no tool to read them with."""
    visible = [skill for skill in skills if not skill.is_hidden]
    if not visible or not READERS.intersection(tools):
        return ""
    listed = "\n".join(_listed(skill) for skill in visible)
    return f"{LEAD}\n\n<available_skills>\n{listed}\n</available_skills>"


def _listed(skill: Skill) -> str:
    return "\n".join(
        (
            "  <skill>",
            f"    <name>{_plain(skill.name)}</name>",
            f"    <description>{_plain(skill.description)}</description>",
            f"    <location>{_plain(skill.path.as_posix())}</location>",
            "  </skill>",
        )
    )


def expand_skill(skill: Skill, text: str, arguments: str) -> str:
    """Write a skill out as the words of a prompt.

    Args:
        skill: The skill.
        text: The current content of its file.
        arguments: The text that the user wrote after its name.
    """
    body = split_frontmatter(text).body.strip()
    place = quoteattr(one_line(skill.path.as_posix()))
    lines = (
        f"<skill name={quoteattr(one_line(skill.name))} location={place}>",
        f"References are relative to {one_line(skill.folder.as_posix())}.",
        "",
        for_model(body),
        "</skill>",
    )
    said = "\n".join(lines)
    return f"{said}\n\n{arguments}" if arguments else said


def _plain(text: str) -> str:
    return escape(one_line(for_model(text)))
