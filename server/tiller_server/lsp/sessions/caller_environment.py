"""Whose environment a session works in: that of the connection whose words it works on."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from typing_extensions import override

from agent_core.kernel.environment import CurrentEnvironment


class CallerEnvironment(CurrentEnvironment):
    """The environment of who spoke last; that of words that wait in the queue counts when they are taken up."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._waiting: dict[str, Mapping[str, str]] = {}
        self._queue: Callable[[], Iterable[str]] = tuple

    def follow(self, queue: Callable[[], Iterable[str]]) -> None:
        """Look there for the ids of the words that wait."""
        self._queue = queue

    @property
    @override
    def variables(self) -> Mapping[str, str]:
        """Present variables. Read on the event loop's thread only."""
        if self._waiting:
            there = set(self._queue())
            for gone in [one for one in self._waiting if one not in there]:
                self._variables = self._waiting.pop(gone)
        return self._variables

    @contextmanager
    def use_for_submission(self, variables: Mapping[str, str]) -> Generator[None]:
        """Be the environment of who speaks, from now on; as before when their words are not taken."""
        before = self.variables
        self.use(variables)
        try:
            yield
        except BaseException:
            if self._variables is variables:
                self.use(before)
            raise

    def use_when_dequeued(self, queue_id: str, variables: Mapping[str, str]) -> None:
        """Be this one when the words of that id are taken up."""
        self._waiting[queue_id] = variables
