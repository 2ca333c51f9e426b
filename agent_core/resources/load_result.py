"""Resources that were read, and problems with those that could not be."""

from pathlib import Path
from typing import Literal, Protocol

from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import readable

ResourceKind = Literal["context", "skill", "prompt", "extension", "systemPrompt", "settings"]


class Resource(Value, frozen=True, kw_only=True):
    """Something that was read."""

    kind: ResourceKind
    name: str
    path: Path | None = None


class LoadProblem(Value, frozen=True, kw_only=True):
    """Something that could not be used as it is, and why."""

    message: str
    """One sentence: the error, and its effect. The location is in the other fields."""
    path: Path | None = None
    line: int | None = None
    """Counted from 1."""
    level: Literal["warning", "error"] = "warning"
    """`error`: it was left out."""

    def __str__(self) -> str:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        """Format the problem with its location, as compilers do."""
        where = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        return readable(f"{where}: {self.message}" if where else self.message)


class LoadedResources(Value, frozen=True, kw_only=True):
    """Result of reading resources."""

    resources: tuple[Resource, ...] = ()
    problems: tuple[LoadProblem, ...] = ()

    def plus(self, other: "LoadedResources") -> "LoadedResources":
        """Return both."""
        return LoadedResources(
            resources=self.resources + other.resources, problems=self.problems + other.problems
        )


class Reloadable(Protocol):
    """Something that can be read anew while a session is open."""

    async def reload(self) -> LoadedResources:
        """Read it again and apply it. Never raises: an error is a problem in the result."""
        ...
