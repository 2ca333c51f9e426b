"""Reads the skills and prompt templates that there are for a workspace: bounded, pinned, each with what is wrong with it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import msgspec

from agent_core.kernel.values import SecretValue, Value
from agent_core.resources.instructions.context_files import ExpectedContentHash
from agent_core.resources.instructions.instruction_file import (
    Instructions,
    UnusableInstructions,
    read_instructions,
)
from agent_core.resources.instructions.worktree import project_folders
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.resources.paths import project_folder
from agent_core.resources.prompts.path_lists import PathList
from agent_core.resources.prompts.skill_walk import SkillFileWalk
from agent_core.resources.prompts.skills import PREFIX, SKILL_FILE, ReadSkill, Skill, read_skill
from agent_core.resources.prompts.templates import SUFFIX, ReadTemplate, Template, read_template
from agent_core.resources.slash_commands import SlashCommand

MOST: Final = 200
"""Skills, and templates: more are not told to a model, and nobody chooses from a longer list."""
PROMPTS: Final = "prompts"
SKILLS: Final = "skills"
AGENTS: Final = Path(".agents", SKILLS)

T = TypeVar("T", ReadSkill, ReadTemplate)


class PromptResourcePaths(Value, frozen=True, kw_only=True):
    """Where to look, and what of it may be used."""

    config: Path
    home: Path
    root: Path
    project_trusted: bool
    expected: ExpectedContentHash = lambda _: None
    """Trusted content of the project's files."""
    skills: PathList = msgspec.field(default_factory=PathList)
    prompts: PathList = msgspec.field(default_factory=PathList)
    added_skills: tuple[Path, ...] = ()
    """Of extensions."""
    added_prompts: tuple[Path, ...] = ()


class PromptResources(SecretValue, frozen=True, kw_only=True):
    """Available skills and templates. Precedence of equal names: project, user, then settings and extensions."""

    hidden: ClassVar = frozenset({"texts"})

    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    texts: Mapping[Path, str] = msgspec.field(default_factory=dict[Path, str])
    """Content of each file."""
    problems: tuple[LoadProblem, ...] = ()

    def commands(self, *, skills: bool) -> tuple[SlashCommand, ...]:
        """List what can be written after a slash; skills unless the settings say otherwise."""
        listed = self.skills if skills else ()
        return (
            *(
                SlashCommand(
                    name=f"{PREFIX}{one.name}", description=one.description, source="skill"
                )
                for one in listed
            ),
            *(
                SlashCommand(
                    name=one.name,
                    description=one.description,
                    source="prompt",
                    argument_hint=one.argument_hint,
                )
                for one in self.templates
            ),
        )

    @property
    def loaded(self) -> LoadedResources:
        """Return what was read and what could not be."""
        skills = [Resource(kind="skill", name=one.name, path=one.path) for one in self.skills]
        prompts = [Resource(kind="prompt", name=one.name, path=one.path) for one in self.templates]
        return LoadedResources(resources=(*skills, *prompts), problems=self.problems)


class PromptResourceReader:
    """Reads the shelf as often as somebody asks; a file that holds what it held is not understood anew. Blocking."""

    def __init__(self) -> None:
        self._skills: dict[Path, tuple[str, ReadSkill]] = {}
        self._templates: dict[Path, tuple[str, ReadTemplate]] = {}

    def read(self, places: PromptResourcePaths) -> PromptResources:
        """Read everything. Never raises because of a file."""
        reading = _Reading(places)
        skills = reading.skills(self._skills)
        templates = reading.templates(self._templates)
        self._skills = {
            path: cached for path, cached in self._skills.items() if path in reading.texts
        }
        self._templates = {
            path: cached for path, cached in self._templates.items() if path in reading.texts
        }
        return PromptResources(
            skills=skills,
            templates=templates,
            texts=reading.texts,
            problems=tuple(reading.problems),
        )


class _Reading:
    """The reading while it goes on."""

    def __init__(self, places: PromptResourcePaths) -> None:
        self.texts: dict[Path, str] = {}
        self.problems: list[LoadProblem] = [
            LoadProblem(message=message)
            for message in (*places.skills.problems, *places.prompts.problems)
        ]
        self._places = places
        self._project = project_folders(places.root)
        self._reals: set[Path] = set()

    def skills(self, cache: dict[Path, tuple[str, ReadSkill]]) -> tuple[Skill, ...]:
        places = self._places
        walk = SkillFileWalk()
        files = (
            path
            for place in (*self._skill_places(), *places.skills.places, *places.added_skills)
            if self._may_look(place)
            for path in walk.skill_files(place)
        )
        found: dict[str, Skill] = {}
        for path in self._wanted(files, places.skills):
            skill = self._read(path, cache, read_skill, names=(SKILL_FILE,))
            if skill is not None and skill.skill is not None:
                self._put(found, skill.skill.name, skill.skill, kind="skill")
        self.problems.extend(walk.problems)
        return tuple(found.values())

    def templates(self, cache: dict[Path, tuple[str, ReadTemplate]]) -> tuple[Template, ...]:
        places = self._places
        folders = (
            *((project_folder(places.root) / PROMPTS,) if places.project_trusted else ()),
            places.config / PROMPTS,
            *places.prompts.places,
            *places.added_prompts,
        )
        files = (path for one in folders if self._may_look(one) for path in self._pages(one))
        found: dict[str, Template] = {}
        for path in self._wanted(files, places.prompts):
            read = self._read(path, cache, read_template, names=())
            if read is not None and read.template is not None:
                self._put(found, read.template.name, read.template, kind="template")
        return tuple(found.values())

    def _skill_places(self) -> Iterator[Path]:
        places = self._places
        if places.project_trusted:
            yield project_folder(places.root) / SKILLS
            yield from (folder / AGENTS for folder in self._project)
        yield places.config / SKILLS
        yield places.home / AGENTS

    def _pages(self, place: Path) -> Iterator[Path]:
        try:
            if place.is_dir():
                pages = (path for path in place.iterdir() if path.name.endswith(SUFFIX))
                yield from sorted(path for path in pages if not path.is_dir())
            elif place.exists() or place.is_symlink():
                yield place
        except OSError as error:
            why = f"it cannot be listed ({error.strerror}); templates in it are left out"
            self.problems.append(LoadProblem(message=why, path=place, level="error"))

    def _may_look(self, place: Path) -> bool:
        """Leave a place of the project alone until it is trusted, whoever names it."""
        return self._places.project_trusted or not self._is_of_project(place)

    def _wanted(self, files: Iterator[Path], listed: PathList) -> Iterator[Path]:
        count = 0
        for path in files:
            if not listed.wants(path):
                continue
            count += 1
            if count > MOST:
                why = f"more than {MOST} files are found; the rest is left out"
                self.problems.append(LoadProblem(message=why, path=path, level="error"))
                return
            yield path

    def _is_of_project(self, path: Path) -> bool:
        return path.is_relative_to(self._project[-1]) and not self._is_own(path)

    def _is_own(self, path: Path) -> bool:
        """Return whether a path is the user's own though their home is a repository, too."""
        places = self._places
        return path.is_relative_to(places.config) or path.is_relative_to(places.home / AGENTS)

    def _read(
        self,
        path: Path,
        cache: dict[Path, tuple[str, T]],
        read: Callable[[str, Path], T],
        *,
        names: Sequence[str],
    ) -> T | None:
        of_project = self._is_of_project(path)
        got = read_instructions(
            path,
            within=self._project[-1] if of_project else None,
            instruction_names=names,
            owners=None,
            expected=self._places.expected(path) if of_project else None,
        )
        match got:
            case UnusableInstructions(why=why):
                self.problems.append(
                    LoadProblem(message=why.removeprefix(f"{path} "), path=path, level="error")
                )
                return None
            case Instructions(text=text, real=real):
                if real in self._reals:
                    return None
                self._reals.add(real)
        before = cache.get(path)
        made = before[1] if before is not None and before[0] == text else read(text, path)
        cache[path] = (text, made)
        self.texts[path] = text
        self.problems.extend(made.problems)
        return made

    def _put(
        self,
        found: dict[str, Skill] | dict[str, Template],
        name: str,
        one: Skill | Template,
        *,
        kind: str,
    ) -> None:
        used = found.setdefault(name, one)  # pyright: ignore[reportArgumentType] - each caller brings what its dict holds
        if used is not one:
            why = f"there is another {kind} named {name!r}, which is used: {used.path}"
            self.problems.append(LoadProblem(message=why, path=one.path))
