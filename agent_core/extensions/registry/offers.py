"""Merge of the registrations of all extensions of a session. Pure. One wins each name; conflicts are reported."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from agent_core.extensions.registry.registrations import (
    Flag,
    OwnCommand,
    Provider,
    Registrations,
    Renderer,
    Shortcut,
)
from agent_core.resources.load_result import LoadProblem
from agent_core.tools import Tool

Conflicts = Literal["last", "first"]
"""Which of two extensions wins a name: the one that was loaded last, or first."""


Thing = TypeVar("Thing")


class Offers(Struct, kw_only=True):
    """Everything by the name under which it is found."""

    tools: dict[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    commands: dict[str, OwnCommand] = msgspec.field(default_factory=dict[str, OwnCommand])
    flags: dict[str, Flag] = msgspec.field(default_factory=dict[str, Flag])
    shortcuts: dict[str, Shortcut] = msgspec.field(default_factory=dict[str, Shortcut])
    renderers: dict[str, Renderer] = msgspec.field(default_factory=dict[str, Renderer])
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    problems: list[LoadProblem] = msgspec.field(default_factory=list[LoadProblem])


def offers_of(all_registered: Sequence[Registrations], *, conflicts: Conflicts) -> Offers:
    """Merge the registrations of extensions, in load order."""
    made = Offers()
    for one in all_registered:
        merge = _Merge(one.extension, conflicts, made.problems)
        merge.into(made.tools, one.tools, what="tool")
        merge.commands(made.commands, one.commands)
        merge.into(made.flags, one.flags, what="flag")
        merge.into(made.shortcuts, one.shortcuts, what="shortcut")
        merge.into(made.renderers, one.renderers, what="message renderer")
        merge.into(made.providers, one.providers, what="provider")
    return made


class _Merge(Struct):
    """Lays the things of one extension beside those of the ones before it."""

    _extension: str
    _conflicts: Conflicts
    _problems: list[LoadProblem]

    def into(self, there: dict[str, Thing], new: Mapping[str, Thing], *, what: str) -> None:
        """Add new entries; resolve and report name conflicts by the rule for conflicts."""
        for name, thing in new.items():
            if name not in there or self._conflicts == "last":
                if name in there:
                    self._tell(what, name, f"that of {self._extension} is used")
                there[name] = thing
            else:
                self._tell(what, name, f"that of {self._extension} is not used")

    def commands(self, there: dict[str, OwnCommand], new: Mapping[str, OwnCommand]) -> None:
        """Add commands; where the first wins, the later one can still be called, as `name:2`."""
        if self._conflicts == "last":
            self.into(there, new, what="command")
            return
        for name, command in new.items():
            called, number = name, 2
            while called in there:
                called, number = f"{name}:{number}", number + 1
            if called != name:
                self._tell("command", name, f"that of {self._extension} is called {called}")
            there[called] = command

    def _tell(self, what: str, name: str, outcome: str) -> None:
        message = f"two extensions have a {what} {name!r}; {outcome}"
        self._problems.append(LoadProblem(message=message))
