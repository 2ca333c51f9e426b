"""The tools a session knows, and which of them the model sees."""

from collections.abc import Mapping, Sequence

from agent_core.kernel.errors import ToolSetInvalid
from agent_core.providers import ToolDeclaration
from agent_core.tools import Tool
from agent_core.tools.port import ConditionalTool
from agent_core.tools.presets import effective_set


class ToolRegistry:
    """A registry and an active set; the set may change between two requests."""

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        active: str | Sequence[str],
        extension_tools: Sequence[Tool] = (),
    ) -> None:
        """Start with a set.

        Args:
            tools: Those that stay.
            active: A preset or names.
            extension_tools: Those of extensions, which come and go; `bring` exchanges them.
        """
        self._registry: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self._behind: dict[str, Tool | None] = {}
        """By the name of each tool of an extension, the tool in whose place it stands."""
        for tool in extension_tools:
            self._put(tool)
        self._active: tuple[str, ...] = effective_set(active, tuple(self._registry))
        self._at_first: tuple[str, ...] = self._active

    @property
    def active_names(self) -> tuple[str, ...]:
        """The names of the active tools, in a stable order: the prompt stays cacheable."""
        return tuple(name for name in self._active if _is_offered(self._registry[name]))

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._registry)

    def active(self) -> Mapping[str, Tool]:
        """Return the active tools by name."""
        return {name: self._registry[name] for name in self.active_names}

    def activate(self, names: str | Sequence[str]) -> None:
        """Choose the active tools: a preset, names, or `+name`/`-name`.

        Raises:
            ToolSetInvalid: Empty, or an unknown name; the set stays.
        """
        self._active = effective_set(names, tuple(self._registry))

    def take_up(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Activate the tools of a branch that are available (if none is, the initial ones); return the missing names.

        Args:
            names: None: the branch never chose any, and those of the beginning are active.
        """
        chosen = self._at_first if names is None else names
        there = tuple(name for name in self._registry if name in chosen)
        self._active = there or self._at_first
        return tuple(name for name in chosen if name not in self._registry)

    def set_extension_tools(self, tools: Sequence[Tool]) -> None:
        """Have these tools of extensions, and no others of theirs; one may stand in the place of another tool.

        A new one is active, and what it stood before is there again when it goes.
        """
        names = {tool.spec.name for tool in tools}
        for name in [one for one in self._behind if one not in names]:
            hidden = self._behind.pop(name)
            if hidden is not None:
                self._registry[name] = hidden
                continue
            del self._registry[name]
            self._at_first = tuple(one for one in self._at_first if one != name)
            self._active = tuple(one for one in self._active if one != name) or self._at_first
        for tool in tools:
            if self._put(tool):
                self._active = (*self._active, tool.spec.name)
                self._at_first = (*self._at_first, tool.spec.name)

    def _put(self, tool: Tool) -> bool:
        """Register a tool of an extension; return whether its name is new."""
        name = tool.spec.name
        is_new = name not in self._registry
        if name not in self._behind:
            self._behind[name] = self._registry.get(name)
        self._registry[name] = tool
        return is_new

    def server_of(self, name: str) -> str | None:
        """Return `server/tool` of a tool that another server runs; None for all others."""
        tool = self._registry.get(name)
        return None if tool is None else tool.spec.mcp

    def register(self, tool: Tool) -> None:
        """Add a tool and activate it.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        self.add(tool)
        name = tool.spec.name
        self._active = (*self._active, name)
        self._at_first = (*self._at_first, name)

    def add(self, tool: Tool) -> None:
        """Add a tool that is not active before somebody says so.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        name = tool.spec.name
        if name in self._registry:
            message = f"a tool named {name!r} exists already; choose another name"
            raise ToolSetInvalid(message)
        self._registry[name] = tool

    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """Return the active tools as a model sees them."""
        return tuple(
            ToolDeclaration(
                name=tool.spec.name,
                description=tool.spec.description,
                parameters=tool.spec.parameters,
            )
            for tool in self.active().values()
        )


def _is_offered(tool: Tool) -> bool:
    return not isinstance(tool, ConditionalTool) or tool.is_offered
