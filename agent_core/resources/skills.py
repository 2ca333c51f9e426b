"""Skills: found in folders, read with their frontmatter, shown to the model."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel.text import for_model, one_line
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem
from agent_core.workspace.files.ignore_rules import Rules, read_rules

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


IGNORE_FILES: Final = (".gitignore", ".ignore", ".fdignore")
IGNORE_BYTES: Final = 64 * 1024
SKIPPED: Final = "node_modules"
MOST_FOLDERS: Final = 2_000
DEEPEST: Final = 12


class SkillFileWalk(Struct, kw_only=True):
    """One walk through some places; a folder that two links lead to is looked into once."""

    problems: list[LoadProblem] = msgspec.field(default_factory=list[LoadProblem])
    _seen: set[tuple[int, int]] = msgspec.field(default_factory=set[tuple[int, int]])

    def skill_files(self, place: Path) -> Iterator[Path]:
        """Return the files of a place in the order of their names.

        A folder with a SKILL.md is a skill, and nothing below it is another. At the top any other Markdown file may be
        one, as it says itself. A place that is not there has none.
        """
        if place.is_file():
            yield place
        else:
            yield from self._below(place, (), top=place, depth=0)

    def _below(
        self, folder: Path, rules: tuple[tuple[Path, Rules], ...], *, top: Path, depth: int
    ) -> Iterator[Path]:
        if not self._is_new(folder, top):
            return
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if depth or not isinstance(error, FileNotFoundError | NotADirectoryError):
                why = f"it cannot be listed ({error.strerror}); skills in it are left out"
                self.problems.append(LoadProblem(message=why, path=folder, level="error"))
            return
        rules = (*rules, *_rules_of(folder, {entry.name for entry in inside}))
        shown = (entry for entry in inside if not entry.name.startswith("."))
        names = [entry for entry in shown if not _is_ignored(entry, folder, rules)]
        skill = next((entry for entry in names if entry.name == SKILL_FILE), None)
        if skill is not None:
            yield Path(skill.path)
            return
        if depth == 0:
            yield from (Path(entry.path) for entry in names if _is_page(entry))
        for entry in names:
            if depth < DEEPEST and _is_folder(entry):
                yield from self._below(Path(entry.path), rules, top=top, depth=depth + 1)

    def _is_new(self, folder: Path, top: Path) -> bool:
        try:
            facts = folder.stat()
        except OSError:
            return folder == top
        identity = (facts.st_dev, facts.st_ino)
        if identity in self._seen:
            return False
        if len(self._seen) == MOST_FOLDERS:
            why = f"more than {MOST_FOLDERS} folders are looked through for skills; the rest is left out"
            self.problems.append(LoadProblem(message=why, path=top, level="error"))
        self._seen.add(identity)
        return len(self._seen) <= MOST_FOLDERS


def _rules_of(folder: Path, names: set[str]) -> Iterator[tuple[Path, Rules]]:
    for name in IGNORE_FILES:
        if name not in names:
            continue
        try:
            if (folder / name).is_file():
                with (folder / name).open("rb") as file:
                    yield folder, read_rules(file.read(IGNORE_BYTES).decode("utf-8", "replace"))
        except OSError:
            continue


def _is_ignored(
    entry: "os.DirEntry[str]", folder: Path, rules: tuple[tuple[Path, Rules], ...]
) -> bool:
    if entry.name == SKIPPED:
        return True
    end = "/" if _is_folder(entry) else ""
    for base, lines in reversed(rules):
        verdict = lines.verdict(f"{(folder / entry.name).relative_to(base).as_posix()}{end}")
        if verdict is not None:
            return verdict
    return False


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_page(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".md") and not _is_folder(entry)
