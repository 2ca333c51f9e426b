"""Arguments that Gemini sends leaf by leaf, each with its path, put together to one object."""

import re
from collections.abc import Iterator
from itertools import pairwise

from agent_core.kernel import JsonObject, JsonValue

WIDEST_GAP = 1_000
"""A list never grows by more at once: its leaves come in order."""
_STEP = re.compile(
    r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""", re.DOTALL
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

PathStep = str | int
_Dict = dict[str, JsonValue]
_List = list[JsonValue]


class PartialArguments:
    """The arguments of one call as far as they have come; the work is linear in what comes."""

    def __init__(self) -> None:
        self._root: _Dict = {}
        self._growing: str | None = None
        self._pieces: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Return whether no text is still growing."""
        return self._growing is None

    def add(self, leaf: JsonObject) -> None:
        """Add a leaf, or more of the string that is growing.

        Raises:
            ValueError: The leaf's path does not fit the existing value.
        """
        path = leaf.get("jsonPath")
        if not isinstance(path, str):
            return
        piece = leaf.get("stringValue")
        if path != self._growing:
            self._settle()
        if isinstance(piece, str):
            self._growing = path
            self._pieces.append(piece)
            if leaf.get("willContinue") is not True:
                self._settle()
            return
        for key in ("numberValue", "boolValue", "nullValue"):
            if key in leaf:
                self._put(path, None if key == "nullValue" else leaf[key])

    def so_far(self) -> JsonObject:
        """Return the object as it is."""
        self._settle()
        return self._root

    def _settle(self) -> None:
        if self._growing is not None:
            path, self._growing = self._growing, None
            text = "".join(self._pieces)
            self._pieces = []
            self._put(path, text)

    def _put(self, path: str, value: JsonValue) -> None:
        steps = list(_steps(path))
        if not steps:
            message = f"the path {path!r} leads nowhere"
            raise ValueError(message)
        at: _Dict | _List = self._root
        for step, following in pairwise(steps):
            at = _child(at, step, following)
        _set(at, steps[-1], value)


def _steps(path: str) -> Iterator[PathStep]:
    position = 1 if path.startswith("$") else 0
    text = path if position else f".{path}"
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            message = f"the path {path!r} cannot be read"
            raise ValueError(message)
        name, index, single, double = found.groups()
        if index is not None:
            yield int(index)
        else:
            quoted = single if single is not None else double
            yield name if quoted is None else _ESCAPED.sub(r"\1", quoted)
        position = found.end()


def _child(parent: _Dict | _List, step: PathStep, following: PathStep) -> _Dict | _List:
    """Descend one step; a missing child is created as a list or an object, as the next step requires."""
    found = _get(parent, step)
    if found is None:
        made: _Dict | _List = [] if isinstance(following, int) else {}
        _set(parent, step, made)
        return made
    if isinstance(found, dict | list):
        return found
    message = f"at {step!r} stands a value already"
    raise ValueError(message)


def _get(parent: _Dict | _List, step: PathStep) -> JsonValue:
    if isinstance(parent, dict):
        return parent.get(str(step))
    if isinstance(step, int) and step < len(parent):
        return parent[step]
    return None


def _set(parent: _Dict | _List, step: PathStep, value: JsonValue) -> None:
    if isinstance(parent, dict):
        parent[str(step)] = value
        return
    if not isinstance(step, int) or step > len(parent) + WIDEST_GAP:
        message = f"a list has no place {step!r}"
        raise ValueError(message)
    parent.extend([None] * (step + 1 - len(parent)))
    parent[step] = value
