"""Prompt templates: Markdown files that replace `/name`, with the text after the name as arguments. Pure."""

from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import one_line
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.prompts.frontmatter import split_frontmatter
from agent_core.resources.prompts.template_arguments import fill_in, split_arguments

SUFFIX: Final = ".md"
DESCRIPTION_CHARS: Final = 60


class Template(Value, frozen=True, kw_only=True):
    """One template."""

    name: str
    description: str
    argument_hint: str = ""
    path: Path


class ReadTemplate(Value, frozen=True, kw_only=True):
    """Result of reading a file."""

    template: Template | None
    problems: tuple[LoadProblem, ...] = ()


def read_template(text: str, path: Path) -> ReadTemplate:
    """Read a template's file."""
    frontmatter = split_frontmatter(text)
    name = path.name.removesuffix(SUFFIX)
    if not name or len(name.split()) != 1 or not name.isprintable():
        message = f"nobody can write /{name!r:.80}: a name has no blanks; the template is left out"
        return ReadTemplate(
            template=None, problems=(LoadProblem(message=message, path=path, level="error"),)
        )
    problems: tuple[LoadProblem, ...] = ()
    if frontmatter.problem:
        message = f"{frontmatter.problem}; the template is used without what stands there"
        problems = (LoadProblem(message=message, path=path, line=frontmatter.problem_line),)
    template = Template(
        name=name,
        description=one_line(frontmatter.text("description")) or _first_line(frontmatter.body),
        argument_hint=one_line(frontmatter.text("argument-hint")),
        path=path,
    )
    return ReadTemplate(template=template, problems=problems)


def expand_template(text: str, arguments: str) -> str:
    """Write a template out as the words of a prompt.

    The arguments are never lost: without a placeholder in the template, they are appended.

    Args:
        text: The current content of the file.
        arguments: The text that the user wrote after the name.
    """
    body = split_frontmatter(text).body.strip()
    filled = fill_in(body, split_arguments(arguments))
    if filled.has_places or not arguments:
        return filled.text
    return f"{filled.text}\n\n{arguments}"


def _first_line(body: str) -> str:
    line = next((line.strip() for line in body.splitlines() if line.strip()), "")
    text = one_line(line)
    return text if len(text) <= DESCRIPTION_CHARS else f"{text[:DESCRIPTION_CHARS]}..."
