"""Parser of Markdown files with frontmatter: the YAML between two `---` lines at the top, and the body below."""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent_core.kernel.values import Value

LINE: Final = "---"
MOST_CHARS: Final = 16 * 1024
"""Longer YAML is not read: it takes long, and it is no description of anything."""

Scalar = str | Mapping[str, str] | tuple[str, ...]


class Frontmatter(Value, frozen=True, kw_only=True):
    """Front matter of a file, and the text after it."""

    fields: Mapping[str, Scalar] = msgspec.field(default_factory=dict[str, Scalar])
    """All scalars are words as they were written: `true` is "true", `1.0` is "1.0"."""
    body: str
    problem: str = ""
    """Why the YAML could not be read; then there are no fields."""
    problem_line: int | None = None
    """In the file, counted from 1."""

    def text(self, name: str) -> str:
        """Return a field of words; empty when there is none, or it is no words."""
        value = self.fields.get(name)
        return value.strip() if isinstance(value, str) else ""

    def string_list(self, name: str) -> tuple[str, ...]:
        """Return a field of several words: a list, or words with blanks or commas between them."""
        value = self.fields.get(name, "")
        if isinstance(value, str):
            return tuple(value.replace(",", " ").split())
        return value if isinstance(value, tuple) else ()

    def is_on(self, name: str) -> bool:
        """Return whether a field says yes."""
        return self.text(name).lower() in {"true", "yes", "on"}


def split_frontmatter(text: str) -> Frontmatter:
    """Parse a file; without `---` on its first line all of it is body. Blocking for long YAML."""
    if text.split("\n", 1)[0].rstrip() != LINE:
        return Frontmatter(body=text)
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == LINE), None)
    if end is None:
        problem = f"its first line is {LINE}, but no second one ends what that begins"
        return Frontmatter(body=text, problem=problem, problem_line=1)
    source, body = "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
    if len(source) > MOST_CHARS:
        problem = f"what stands between its lines of dashes is longer than {MOST_CHARS} characters"
        return Frontmatter(body=body, problem=problem, problem_line=1)
    return _read(source, body)


def _read(source: str, body: str) -> Frontmatter:
    # 18 ms, and most projects have no such files.
    import yaml  # noqa: PLC0415 - see above

    try:
        # The base loader makes words of everything: no dates, no numbers, no objects, whatever the tags say.
        found: object = yaml.load(source, Loader=yaml.BaseLoader)  # pyright: ignore[reportAny] - a parser gives Any
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 2
        what = error.problem or error.context or "it makes no sense"
        return Frontmatter(body=body, problem=f"its YAML is broken: {what}", problem_line=line)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else _first(error)
        return Frontmatter(body=body, problem=f"its YAML is broken: {what}", problem_line=1)
    if not isinstance(found, dict):
        if found is None or found == "":
            return Frontmatter(body=body)
        problem = "its YAML is no list of `name: value`"
        return Frontmatter(body=body, problem=problem, problem_line=2)
    fields = {str(key): _value(value) for key, value in found.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - a parser gives Any
    return Frontmatter(fields=fields, body=body)


def _value(value: object) -> Scalar:
    match value:
        case str():
            return value
        case list():
            return tuple(one for one in value if isinstance(one, str))  # pyright: ignore[reportUnknownVariableType] - as above
        case dict():
            return {str(name): one for name, one in value.items() if isinstance(one, str)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - as above
        case _:
            return ""


def _first(error: Exception) -> str:
    return (str(error).splitlines() or ["it makes no sense"])[0]
