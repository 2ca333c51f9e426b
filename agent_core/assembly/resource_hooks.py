"""Asks hooks for more folders with skills and prompt templates."""

from typing import Literal

from agent_core.hooks import ResourcesGiven, ResourcesSought
from agent_core.resources.load_result import LoadedResources
from agent_core.session.context import SessionContext
from agent_core.session.input.commands import TemplateSource


class HookResourcePaths:
    """The folders that hooks give: asked for when a session opens, and whenever everything is read anew."""

    def __init__(self, parts: SessionContext, templates: TemplateSource) -> None:
        self._parts = parts
        self._templates = templates

    async def look(self, reason: Literal["startup", "reload"]) -> None:
        """Ask hooks, and have their folders looked in from now on."""
        cwd = str(self._parts.place.workspace.root)
        match await self._parts.hooks.ask(ResourcesSought(cwd=cwd, reason=reason)):
            case ResourcesGiven(skills=skills, prompts=prompts):
                self._templates.look_also(skills=skills, prompts=prompts)
            case _:
                self._templates.look_also(skills=(), prompts=())

    async def reload(self) -> LoadedResources:
        """Ask the hooks again. The reader of the folders reports their problems, so the result is empty."""
        await self.look("reload")
        return LoadedResources()
