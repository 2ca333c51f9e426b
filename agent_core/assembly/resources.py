"""Instructions, skills and prompt templates of a workspace, in their current state."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from agent_core.assembly.config.workspace_config import Ground, home_of
from agent_core.assembly.request import SessionRequest
from agent_core.kernel.values import Value
from agent_core.resources.instructions.context_files import ContextFiles, load_context_files
from agent_core.resources.instructions.system_prompt import Section, ToolWords, prompt_sections
from agent_core.resources.load_result import Loaded, Problem, Resource
from agent_core.resources.prompts.path_lists import read_path_list
from agent_core.resources.prompts.prompt_resources import Places, Shelf, ShelfReader
from agent_core.resources.prompts.skills import PREFIX, skill_words, skills_section
from agent_core.resources.prompts.templates import template_words
from agent_core.resources.settings.values import SettingsValues
from agent_core.resources.slash_commands import Command, Slashed
from agent_core.tools import ToolSpec


class Brought(Value, frozen=True, kw_only=True):
    """More places to look in, absolute."""

    skills: tuple[Path, ...] = ()
    prompts: tuple[Path, ...] = ()


class LiveResources:
    """Reads them anew for every run and whenever one of them is named: they are part of what the user edits."""

    def __init__(
        self,
        request: SessionRequest,
        ground: Ground,
        *,
        values: Callable[[], SettingsValues],
        brought: Callable[[], "Brought"],
    ) -> None:
        """Create the resources; nothing is read yet.

        Args:
            request: Request of the session that uses them.
            ground: Inputs read before the session opened.
            values: Returns the settings in force.
            brought: Returns the places that extensions contribute.
        """
        self._brought = brought
        self._named = Brought()
        self._request = request
        self._ground = ground
        self._values = values
        self._reader = ShelfReader()
        self._shelf = Shelf()
        self._turn = anyio.Lock()

    def commands(self) -> tuple[Command, ...]:
        """List the skills and templates that were found when they were last read."""
        return self._shelf.commands(skills=self._values().enable_skill_commands)

    def look_also(self, *, skills: Sequence[str], prompts: Sequence[str]) -> None:
        """Replace the additional places to search. Relative paths start at the workspace."""
        listed = partial(read_path_list, home=home_of(self._request.env), root=self._ground.root)
        self._named = Brought(skills=listed(skills).places, prompts=listed(prompts).places)

    async def refresh(self) -> tuple[str, ...]:
        """Read skills and templates; gives what is wrong with them, a sentence each."""
        return tuple(str(problem) for problem in (await self.look()).problems)

    async def written_out(self, said: Slashed) -> str | None:
        """Return the words that a name stands for; None when it stands for none."""
        name, arguments = said.name, said.arguments
        is_skill = name.startswith(PREFIX)
        if is_skill and not self._values().enable_skill_commands:
            return None
        shelf = await self.look()
        if is_skill:
            wanted = name.removeprefix(PREFIX)
            skill = next((one for one in shelf.skills if one.name == wanted), None)
            return skill and skill_words(skill, shelf.texts[skill.path], arguments)
        template = next((one for one in shelf.templates if one.name == name), None)
        return template and template_words(shelf.texts[template.path], arguments)

    async def look(self) -> Shelf:
        """Read skills and templates."""
        async with self._turn:
            read = partial(self._reader.read, self._places())
            self._shelf = await anyio.to_thread.run_sync(read)
        return self._shelf

    async def reload(self) -> Loaded:
        """Read everything, and say what there is and what is wrong with it."""
        files = await self._files()
        shelf = await self.look()
        return _told(files).plus(shelf.loaded)

    async def sections(self, specs: Sequence[ToolSpec]) -> tuple[Section, ...]:
        """Write the parts of the system prompt for the tools that are active."""
        request = self._request
        # What configures the agent may have changed in an added folder, as it may in the primary one.
        if await request.added.look():
            _ = await self._ground.standing.refresh()
        files = await self._files()
        shelf = await self.look()
        return prompt_sections(
            root=self._ground.root,
            added=[(one.folder, one.trusted) for one in request.added.roots],
            tools=[
                ToolWords(name=spec.name, snippet=spec.snippet, guidelines=spec.guidelines)
                for spec in specs
            ],
            context=files.files,
            custom=files.system.text if files.system else None,
            append=[files.append.text] if files.append else [],
            skills=skills_section(shelf.skills, tools=[spec.name for spec in specs]),
        )

    async def _files(self) -> ContextFiles:
        ground = self._ground
        return await load_context_files(
            config=ground.paths.config,
            root=ground.root,
            project_trusted=ground.standing.is_trusted(),
            added=self._request.added.trusted,
            above=() if ground.trust is None else ground.trust.above,
            expected=ground.expected,
        )

    def _places(self) -> Places:
        ground, values = self._ground, self._values()
        home = home_of(self._request.env)
        listed = partial(read_path_list, home=home, root=ground.root)
        brought = self._brought()
        return Places(
            config=ground.paths.config,
            home=home,
            root=ground.root,
            project_trusted=ground.standing.is_trusted(),
            expected=ground.expected,
            skills=listed(values.skills),
            prompts=listed(values.prompts),
            added_skills=(*brought.skills, *self._named.skills),
            added_prompts=(*brought.prompts, *self._named.prompts),
        )


def _told(files: ContextFiles) -> Loaded:
    context = [Resource(kind="context", name=one.path.name, path=one.path) for one in files.files]
    system = [
        Resource(kind="systemPrompt", name=one.path.name, path=one.path)
        for one in (files.system, files.append)
        if one is not None
    ]
    problems = tuple(Problem(message=why, level="error") for why in files.problems)
    return Loaded(resources=(*context, *system), problems=problems)
