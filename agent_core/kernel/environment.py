"""The environment a session works in: that of whoever spoke last, which may be somebody else each time."""

from collections.abc import Callable, Iterator, Mapping, Set as AbstractSet

from typing_extensions import override


class CurrentEnvironment(Mapping[str, str]):
    """Environment variables that are exchanged as a whole while others hold this mapping.

    Copy it (`dict(…)`) on the event loop's thread, where it is exchanged; single look-ups may come from any thread.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    @property
    def variables(self) -> Mapping[str, str]:
        """The current mapping of variables; a later `use` replaces it and does not change it."""
        return self._variables

    def use(self, variables: Mapping[str, str]) -> None:
        """Be this from now on."""
        self._variables = variables

    @override
    def __getitem__(self, name: str) -> str:
        return self.variables[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    @override
    def __len__(self) -> int:
        return len(self.variables)

    @override
    def __repr__(self) -> str:
        # Never the values: a mapping ends up in logs and tracebacks sooner or later.
        return f"<{type(self).__name__} of {len(self)} variables>"


class EnvironmentWith(CurrentEnvironment):
    """An environment with another value for one name, which is looked up and changed anew each time."""

    def __init__(
        self, variables: Mapping[str, str], *, name: str, changed: Callable[[str], str]
    ) -> None:
        super().__init__(variables)
        self._name = name
        self._changed = changed

    @override
    def __getitem__(self, name: str) -> str:
        value = self.variables[name]
        return self._changed(value) if name == self._name else value


class EnvironmentPlus(CurrentEnvironment):
    """An environment with values of ours above it."""

    def __init__(self, variables: Mapping[str, str], *, ours: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._ours = ours

    @override
    def __getitem__(self, name: str) -> str:
        return self._ours[name] if name in self._ours else self.variables[name]

    @override
    def __iter__(self) -> Iterator[str]:
        yield from self._ours
        yield from (name for name in self.variables if name not in self._ours)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


class EnvironmentWithout(CurrentEnvironment):
    """An environment less some names; both are looked up anew each time."""

    def __init__(
        self, variables: Mapping[str, str], *, hidden: Callable[[], AbstractSet[str]]
    ) -> None:
        super().__init__(variables)
        self._hidden = hidden

    @override
    def __getitem__(self, name: str) -> str:
        if name in self._hidden():
            raise KeyError(name)
        return self.variables[name]

    @override
    def __iter__(self) -> Iterator[str]:
        hidden = self._hidden()
        return (name for name in self.variables if name not in hidden)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)
