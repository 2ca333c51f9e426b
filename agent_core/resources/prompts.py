"""Skills, prompt templates and agents of a workspace, from all the places where they lie."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import ClassVar, Final, TypeVar

import msgspec

from agent_core.kernel.values import SecretValue, Value
from agent_core.resources.agents import BUILT_IN, AgentDefinition, ReadAgent, read_agent
from agent_core.resources.instructions import (
    ExpectedContentHash,
    Instructions,
    UnusableInstructions,
    project_folders,
    read_instructions,
)
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.resources.offers import SlashCommand
from agent_core.resources.paths import project_folder
from agent_core.resources.skills import (
    PREFIX,
    SKILL_FILE,
    ReadSkill,
    Skill,
    SkillFileWalk,
    read_skill,
)
from agent_core.resources.templates import SUFFIX, ReadTemplate, Template, read_template
from agent_core.workspace.files.ignore_rules import Rules, read_rules

GLOB_SIGNS = "*?["


class PathList(Value, frozen=True, kw_only=True):
    """The parsed form of a list of paths."""

    places: tuple[Path, ...] = ()
    """More folders or files to look in, absolute, in their order."""
    kept: tuple[Path, ...] = ()
    dropped: tuple[Path, ...] = ()
    unwanted: Rules = msgspec.field(default_factory=lambda: Rules(lines=()))
    problems: tuple[str, ...] = ()
    """A sentence for each entry that could not be read."""

    def wants(self, path: Path) -> bool:
        """Return whether something that was found is used: `+path` prevails, then `-path`, then the globs."""
        around = (path, *path.parents)
        if any(one in self.kept for one in around):
            return True
        if any(one in self.dropped for one in around):
            return False
        return not any(self._is_unwanted(one, folder=one != path) for one in around)

    def _is_unwanted(self, path: Path, *, folder: bool) -> bool:
        below_top = path.as_posix().lstrip("/")
        return bool(below_top and self.unwanted.verdict(f"{below_top}/" if folder else below_top))


def read_path_list(entries: Sequence[str], *, home: Path, root: Path) -> PathList:
    """Read a list of settings.

    Args:
        entries: `path`, `+path`, `-path`, `!glob`.
        home: For a leading `~`.
        root: The workspace; paths of an editor or a request are relative to it. Paths of files are absolute already.
    """
    places: list[Path] = []
    signed: dict[str, list[Path]] = {"+": [], "-": []}
    globs: list[str] = []
    problems: list[str] = []
    for entry in entries:
        if entry.startswith("!"):
            globs.append(_from_home(entry[1:], home))
            continue
        sign = entry[:1] if entry[:1] in signed else ""
        path_text = entry.removeprefix(sign).strip()
        if not path_text or "\0" in path_text:
            problems.append(f"{entry!r} names no path; it is left out")
        elif any(glob in path_text for glob in GLOB_SIGNS) and not sign:
            problems.append(f"{entry!r} is a glob: only behind ! does one count; it is left out")
        else:
            path = _normal(root / _from_home(path_text, home))
            signed.get(sign, places).append(path)
    return PathList(
        places=tuple(places),
        kept=tuple(signed["+"]),
        dropped=tuple(signed["-"]),
        unwanted=read_rules("\n".join(globs)),
        problems=tuple(problems),
    )


def _from_home(path_text: str, home: Path) -> str:
    return (
        str(home / path_text[2:])
        if path_text.startswith("~/")
        else str(home)
        if path_text == "~"
        else path_text
    )


def _normal(path: Path) -> Path:
    """Leave `.` and `..` out of a path, without looking whether a link stands before one."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part != "..":
            parts.append(part)
        elif parts:
            _ = parts.pop()
    return Path(path.anchor, *parts)


MOST: Final = 200
"""Skills, and templates: more are not told to a model, and nobody chooses from a longer list."""
PROMPTS: Final = "prompts"
SKILLS: Final = "skills"
AGENTS: Final = Path(".agents", SKILLS)

AGENT_FILES: Final = "agents"
CLAUDE_AGENTS: Final = Path(".claude", AGENT_FILES)
"""Where Claude Code keeps agents."""

T = TypeVar("T", ReadSkill, ReadTemplate, ReadAgent)


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
    """Available skills, templates and agents. Precedence of equal names: project, user, then settings and extensions."""

    hidden: ClassVar = frozenset({"texts"})

    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    agents: tuple[AgentDefinition, ...] = tuple(BUILT_IN)
    """Those that are built in come first, unless a file has their name."""
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
        agents = [
            Resource(kind="agent", name=one.name, path=one.path)
            for one in self.agents
            if one.path is not None
        ]
        return LoadedResources(resources=(*skills, *prompts, *agents), problems=self.problems)


class PromptResourceReader:
    """Reads the shelf as often as somebody asks; a file that holds what it held is not understood anew. Blocking.

    Several threads may read; they take turns.
    """

    def __init__(self) -> None:
        self._turn = Lock()
        self._skills: dict[Path, tuple[str, ReadSkill]] = {}
        self._templates: dict[Path, tuple[str, ReadTemplate]] = {}
        self._agents: dict[Path, tuple[str, ReadAgent]] = {}

    def read(self, places: PromptResourcePaths) -> PromptResources:
        """Read everything. Never raises because of a file."""
        with self._turn:
            return self._read(places)

    def _read(self, places: PromptResourcePaths) -> PromptResources:
        reading = _Reading(places)
        skills = reading.skills(self._skills)
        templates = reading.templates(self._templates)
        agents = reading.agents(self._agents)
        self._agents = {
            path: cached for path, cached in self._agents.items() if path in reading.texts
        }
        self._skills = {
            path: cached for path, cached in self._skills.items() if path in reading.texts
        }
        self._templates = {
            path: cached for path, cached in self._templates.items() if path in reading.texts
        }
        return PromptResources(
            skills=skills,
            templates=templates,
            agents=agents,
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

    def agents(self, cache: dict[Path, tuple[str, ReadAgent]]) -> tuple[AgentDefinition, ...]:
        places = self._places
        folders = (
            *(
                (project_folder(places.root) / AGENT_FILES, places.root / CLAUDE_AGENTS)
                if places.project_trusted
                else ()
            ),
            places.config / AGENT_FILES,
            places.home / CLAUDE_AGENTS,
        )
        files = (path for one in folders if self._may_look(one) for path in self._pages(one))
        found: dict[str, AgentDefinition] = {}
        for path in self._wanted(files, PathList()):
            read = self._read(path, cache, read_agent, names=())
            if read is not None and read.agent is not None:
                self._put(found, read.agent.name, read.agent, kind="agent")
        built_in = {one.name: one for one in BUILT_IN}
        return tuple({**built_in, **found}.values())

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
        own = (places.config, places.home / AGENTS, places.home / CLAUDE_AGENTS)
        return any(path.is_relative_to(one) for one in own)

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
        found: dict[str, Skill] | dict[str, Template] | dict[str, AgentDefinition],
        name: str,
        one: Skill | Template | AgentDefinition,
        *,
        kind: str,
    ) -> None:
        used = found.setdefault(name, one)  # pyright: ignore[reportArgumentType] - each caller brings what its dict holds
        if used is not one:
            why = f"there is another {kind} named {name!r}, which is used: {used.path}"
            self.problems.append(LoadProblem(message=why, path=one.path))
