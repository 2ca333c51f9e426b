"""Instructions, skills and prompt templates of a workspace, in their current state."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
from msgspec.structs import replace

from agent_core.assembly.config import WorkspaceConfig, load_workspace_config
from agent_core.assembly.request import SessionRequest
from agent_core.compaction import estimate_text
from agent_core.hooks import HookRunner, ResourcesGiven, ResourcesSought
from agent_core.kernel.threads import (
    AHEAD_S,
    ReadAhead,
    ThreadCall,
    begin_in_thread,
    run_in_thread,
)
from agent_core.kernel.values import Value
from agent_core.resources.agents import AgentDefinition
from agent_core.resources.instructions import (
    ContextFiles,
    ContextPlaces,
    PromptSection,
    ToolPrompt,
    prompt_sections,
    read_context_files,
)
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.resources.offers import CommandSource, SlashCommand, SlashInvocation
from agent_core.resources.paths import home_of
from agent_core.resources.prompts import (
    PromptResourcePaths,
    PromptResourceReader,
    PromptResources,
    read_path_list,
)
from agent_core.resources.settings.values import SettingsValues
from agent_core.resources.skills import PREFIX, expand_skill, skills_section
from agent_core.resources.templates import expand_template
from agent_core.resources.trust.workspace_trust import TrustCheckResult, WorkspaceTrust
from agent_core.session.input.commands import TemplateSource
from agent_core.tools import ToolSpec


class ExtraResourcePaths(Value, frozen=True, kw_only=True):
    """More places to look in, absolute."""

    skills: tuple[Path, ...] = ()
    prompts: tuple[Path, ...] = ()


class LiveResources:
    """Reads them anew for every run and whenever one of them is named: they are part of what the user edits."""

    def __init__(
        self,
        request: SessionRequest,
        config: WorkspaceConfig,
        *,
        values: Callable[[], SettingsValues],
        brought: Callable[[], "ExtraResourcePaths"],
    ) -> None:
        """Create the resources; nothing is read yet.

        Args:
            request: Request of the session that uses them.
            config: Inputs read before the session opened.
            values: Returns the settings in force.
            brought: Returns the places that extensions contribute.
        """
        self._brought = brought
        self._named = ExtraResourcePaths()
        self._request = request
        self._config = config
        self._values = values
        self._reader = PromptResourceReader()
        self._shelf = PromptResources()
        self._ahead = ReadAhead[tuple[ContextFiles, PromptResources]]()

    def commands(self) -> tuple[SlashCommand, ...]:
        """List the skills and templates that were found when they were last read."""
        return self._shelf.commands(skills=self._values().enable_skill_commands)

    def look_also(self, *, skills: Sequence[str], prompts: Sequence[str]) -> None:
        """Replace the additional places to search. Relative paths start at the workspace."""
        listed = partial(read_path_list, home=home_of(self._request.env), root=self._config.root)
        self._named = ExtraResourcePaths(
            skills=listed(skills).places, prompts=listed(prompts).places
        )

    def own_commands(self) -> Sequence[CommandSource]:
        """Return the commands of the memory, if it is on."""
        memory = self._request.memory
        return () if memory is None else (memory.command,)

    async def refresh(self) -> tuple[str, ...]:
        """Read skills and templates; gives what is wrong with them, a sentence each."""
        return tuple(str(problem) for problem in (await self.look()).problems)

    async def expand(self, said: SlashInvocation) -> str | None:
        """Return the words that a name stands for; None when it stands for none."""
        name, arguments = said.name, said.arguments
        is_skill = name.startswith(PREFIX)
        if is_skill and not self._values().enable_skill_commands:
            return None
        shelf = await self.look()
        if is_skill:
            wanted = name.removeprefix(PREFIX)
            skill = next((one for one in shelf.skills if one.name == wanted), None)
            return skill and expand_skill(skill, shelf.texts[skill.path], arguments)
        template = next((one for one in shelf.templates if one.name == name), None)
        return template and expand_template(shelf.texts[template.path], arguments)

    async def look(self) -> PromptResources:
        """Read skills and templates."""
        self._shelf = await run_in_thread(self._reader.read, self._places())
        return self._shelf

    def read_ahead(self) -> Callable[[], None]:
        """Return a blocking function that reads everything for the next `sections`."""
        inputs = (self._context_places(), self._places())
        return self._ahead.prepare(inputs, partial(self._read, *inputs))

    def _read(
        self, context: ContextPlaces, places: PromptResourcePaths
    ) -> tuple[ContextFiles, PromptResources]:
        return read_context_files(context), self._reader.read(places)

    async def reload(self) -> LoadedResources:
        """Read everything, and say what there is and what is wrong with it."""
        inputs = (self._context_places(), self._places())
        files, self._shelf = await run_in_thread(self._read, *inputs)
        return _context_resources(files).plus(self._shelf.loaded)

    async def sections(
        self, specs: Sequence[ToolSpec], topic: str = ""
    ) -> tuple[PromptSection, ...]:
        """Write the parts of the system prompt for the tools that are active and the topic of the conversation."""
        request = self._request
        # What configures the agent may have changed in an added folder, as it may in the primary one.
        if await request.added.look():
            _ = await self._config.permission_state.refresh()
        inputs = (self._context_places(), self._places())
        files, shelf = await self._ahead.take(inputs, partial(self._read, *inputs))
        self._shelf = shelf
        return prompt_sections(
            root=self._config.root,
            added=[(one.folder, one.trusted) for one in request.added.roots],
            tools=[
                ToolPrompt(name=spec.name, snippet=spec.snippet, guidelines=spec.guidelines)
                for spec in specs
            ],
            context=files.files,
            custom=files.system.text if files.system else None,
            append=self._appended(files),
            skills=skills_section(shelf.skills, tools=[spec.name for spec in specs]),
            memory="" if request.memory is None else await request.memory.section(specs, topic),
        )

    @property
    def agents(self) -> tuple[AgentDefinition, ...]:
        """The agents that were found when they were last read."""
        return self._shelf.agents

    def _appended(self, files: ContextFiles) -> list[str]:
        own = [files.append.text] if files.append else []
        task = self._request.task
        return own if task is None else [*own, task.instructions]

    def _context_places(self) -> ContextPlaces:
        config = self._config
        return ContextPlaces(
            config=config.paths.config,
            root=config.root,
            project_trusted=config.permission_state.is_trusted(),
            added=self._request.added.trusted,
            above=frozenset() if config.trust is None else config.trust.above,
            expected=config.expected,
        )

    def _places(self) -> PromptResourcePaths:
        config, values = self._config, self._values()
        home = home_of(self._request.env)
        listed = partial(read_path_list, home=home, root=config.root)
        brought = self._brought()
        return PromptResourcePaths(
            config=config.paths.config,
            home=home,
            root=config.root,
            project_trusted=config.permission_state.is_trusted(),
            expected=config.expected,
            skills=listed(values.skills),
            prompts=listed(values.prompts),
            added_skills=(*brought.skills, *self._named.skills),
            added_prompts=(*brought.prompts, *self._named.prompts),
        )


class RunStartTrust:
    """The trust of a workspace, whose check also reads, in the same call in a thread, what the run that begins asks for next."""

    def __init__(
        self,
        trust: WorkspaceTrust,
        readers: Sequence[Callable[[], Callable[[], None]]],
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it.

        Args:
            trust: The trust of the workspace.
            readers: Prepare one read each. The functions that they return are called in the thread, after the check.
            now_s: Clock that only goes on.
        """
        self._now_s = now_s
        self._trust = trust
        self._readers = tuple(readers)
        self._begun: tuple[float, ThreadCall[TrustCheckResult]] | None = None

    @property
    def root(self) -> Path:
        """The workspace."""
        return self._trust.root

    def begin(self) -> None:
        """Begin the check of a run that is about to begin, beside the steps before it."""
        self._begun = (self._now_s(), self._begin())

    async def check(self) -> TrustCheckResult:
        """Check the files and the decision, and read ahead; a check begun within the last second counts. Never raises."""
        begun, self._begun = self._begun, None
        is_recent = begun is not None and self._now_s() - begun[0] < AHEAD_S
        call = begun[1] if begun is not None and is_recent else self._begin()
        return await call.wait()

    def _begin(self) -> ThreadCall[TrustCheckResult]:
        return begin_in_thread(self._check, [prepare() for prepare in self._readers])

    def _check(self, reads: Sequence[Callable[[], None]]) -> TrustCheckResult:
        was_trusted = self._trust.is_trusted
        verdict = self._trust.check_now()
        # With another trust other files count, and settings that say where they lie.
        if verdict.is_trusted == was_trusted:
            for read in reads:
                read()
        return verdict

    async def record(
        self, said: Literal["trusted", "refused"], *, lasting: bool
    ) -> TrustCheckResult:
        """Record the user's decision, as `WorkspaceTrust.record` does; a check begun before it does not count."""
        self._begun = None
        return await self._trust.record(said, lasting=lasting)


async def load_inputs(request: SessionRequest) -> tuple[SessionRequest, WorkspaceConfig]:
    """Return the request with the memory of the workspace, if it is on there, and the inputs read before the session opens.

    A task has no memory, and neither has a workspace elsewhere.

    Raises:
        TillerError: As `load_workspace_config` raises it.
    """
    config = await load_workspace_config(request)
    folder = config.paths.memory
    has_own = request.task is None and request.ports is None
    if not has_own or not await anyio.Path(folder / "projects.json").exists():
        return replace(request, memory=None), config
    from agent_core.memory.session_memory import opened_memory  # noqa: PLC0415 - at first use

    memory, notices = await opened_memory(
        folder,
        config.root,
        env=request.env,
        clock=request.clock,
        redactor=request.redactor,
        is_trusted=lambda: config.permission_state.is_trusted(),  # noqa: PLW0108 - it is replaced later
        estimate=estimate_text,
    )
    return replace(request, memory=memory, notices=(*request.notices, *notices)), config


def _context_resources(files: ContextFiles) -> LoadedResources:
    context = [Resource(kind="context", name=one.path.name, path=one.path) for one in files.files]
    system = [
        Resource(kind="systemPrompt", name=one.path.name, path=one.path)
        for one in (files.system, files.append)
        if one is not None
    ]
    problems = tuple(LoadProblem(message=why, level="error") for why in files.problems)
    return LoadedResources(resources=(*context, *system), problems=problems)


class HookResourcePaths:
    """The folders that hooks give: asked for when a session opens, and whenever everything is read anew."""

    def __init__(self, hooks: HookRunner, root: Path, templates: TemplateSource) -> None:
        self._hooks = hooks
        self._root = root
        self._templates = templates

    async def look(self, reason: Literal["startup", "reload"]) -> None:
        """Ask hooks, and have their folders looked in from now on."""
        cwd = str(self._root)
        match await self._hooks.ask(ResourcesSought(cwd=cwd, reason=reason)):
            case ResourcesGiven(skills=skills, prompts=prompts):
                self._templates.look_also(skills=skills, prompts=prompts)
            case _:
                self._templates.look_also(skills=(), prompts=())

    async def reload(self) -> LoadedResources:
        """Ask the hooks again. The reader of the folders reports their problems, so the result is empty."""
        await self.look("reload")
        return LoadedResources()
