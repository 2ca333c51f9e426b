"""Prompt templates and their arguments."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.skills import split_frontmatter

WORD: Final = re.compile(r"\S+")
DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?!\S)', re.DOTALL)
SINGLE: Final = re.compile(r"'([^']*)'(?!\S)")
ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
PLAIN: Final = re.compile(r"\$(?:(\d{1,9})|@|ARGUMENTS\b)")
BRACED: Final = re.compile(r"\$\{(?:(\d{1,9})|@|ARGUMENTS)(?=[:}])")
ELSE: Final = ":-"
SLICE: Final = re.compile(r":(\d{1,9})(?::(\d{1,9}))?\}")
OPENS_OR_CLOSES: Final = re.compile(
    r"\$\{(?:\d{1,9}|@|ARGUMENTS)(?::\d{1,9}){0,2}\}|\$\{(?:\d{1,9}|@|ARGUMENTS):-|\}"
)
MOST_NESTED: Final = 20


def split_arguments(text: str) -> tuple[str, ...]:
    """Split arguments at whitespace, but not within quotes that enclose one.

    In double quotes a backslash escapes the next character. A quote within a word, or one that is not closed, is an
    ordinary character: people write "it's".
    """
    found: list[str] = []
    at = 0
    while (word := WORD.search(text, at)) is not None:
        start = word.start()
        if quoted := DOUBLE.match(text, start):
            found.append(ESCAPED.sub(r"\1", quoted[1]))
        elif quoted := SINGLE.match(text, start):
            found.append(quoted[1])
        else:
            found.append(word[0])
        at = (quoted or word).end()
    return tuple(found)


class FilledTemplate(Value, frozen=True, kw_only=True):
    """A template with its arguments in their places."""

    text: str
    has_places: bool
    """Whether there was a place for any."""


def fill_in(template: str, arguments: Sequence[str]) -> FilledTemplate:
    """Substitute arguments into a template. Placeholders within arguments are not expanded.

    `$1` is the first, `$@` and `$ARGUMENTS` all of them, `${@:2}` those from the second on, `${@:2:1}` one of these;
    `${1:-words}` and `${@:-words}` default to the words. A missing argument without a default is empty.
    """
    return _Filling(template, tuple(arguments)).filled()


class _Filling:
    """One walk along a template."""

    def __init__(self, template: str, arguments: tuple[str, ...]) -> None:
        self._template = template
        self._arguments = arguments
        self._closes = _closing_braces(template)
        self._has_places = False

    def filled(self) -> FilledTemplate:
        """Fill it in."""
        text = self._between(0, len(self._template))
        return FilledTemplate(text=text, has_places=self._has_places)

    def _between(self, start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        while (dollar := self._template.find("$", at, end)) >= 0:
            parts.append(self._template[at:dollar])
            text, at = self._place(dollar)
            parts.append(text)
        parts.append(self._template[at:end])
        return "".join(parts)

    def _place(self, at: int) -> tuple[str, int]:
        """Return the text for the placeholder at a dollar sign, and its end; any other dollar sign stays as it is."""
        template = self._template
        braced = BRACED.match(template, at)
        place = braced or PLAIN.match(template, at)
        if place is None:
            return "$", at + 1
        value, end = self._value(place[1]), place.end()
        if braced is not None and braced[1] is None and (cut := SLICE.match(template, end)):
            value, end = self._slice(int(cut[1]), cut[2]), cut.end()
        elif braced is not None and template[end] == "}":
            end += 1
        elif braced is not None:
            close = self._closes.get(at)
            if close is None:
                return "$", at + 1
            value, end = value or self._between(end + len(ELSE), close), close + 1
        self._has_places = True
        return value, end

    def _value(self, number: str | None) -> str:
        if number is None:
            return " ".join(self._arguments)
        index = int(number) - 1
        return self._arguments[index] if 0 <= index < len(self._arguments) else ""

    def _slice(self, first: int, count: str | None) -> str:
        start = max(first - 1, 0)
        end = None if count is None else start + int(count)
        return " ".join(self._arguments[start:end])


def _closing_braces(template: str) -> Mapping[int, int]:
    """Return where each `${…:-` ends that does, by where it begins; found beforehand, so that nothing is walked twice."""
    closes: dict[int, int] = {}
    opened: list[int] = []
    for sign in OPENS_OR_CLOSES.finditer(template):
        if sign[0].endswith(ELSE):
            opened.append(sign.start())
        elif sign[0] == "}" and opened:
            start = opened.pop()
            if len(opened) < MOST_NESTED:
                closes[start] = sign.start()
    return closes


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
