"""How people name models: whole names, parts of names, patterns, and a thinking level behind a colon: pure."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from agent_core.events import ThinkingLevel
from agent_core.kernel.values import Value
from agent_core.providers.messages.thinking_level import LEVELS
from agent_core.providers.model import ModelInfo

WILD = re.compile(r"[*?\[]")
DATED = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest)$")


class Named(Value, frozen=True, kw_only=True):
    """A model, and how hard it shall think if its name said so."""

    model: ModelInfo
    thinking: ThinkingLevel | None = None

    @property
    def ref(self) -> str:
        """The full name, with the level."""
        return f"{self.model.ref}:{self.thinking}" if self.thinking else self.model.ref


class ModelScope(Value, frozen=True, kw_only=True):
    """The models that a user cycles through."""

    models: tuple[Named, ...]
    problems: tuple[str, ...] = ()
    """Patterns that stand for nothing that can be used, a sentence each."""


def without_level(ref: str) -> tuple[str, ThinkingLevel | None]:
    """Split the level off the end of a name; ids may contain colons, so look up the whole name first."""
    name, colon, word = ref.rpartition(":")
    for level in LEVELS if colon and name else ():
        if level == word:
            return name, level
    return ref, None


def without_date(model: str) -> str | None:
    """Return the id that a dated one is a snapshot of; None when it has no date."""
    bare = DATED.sub("", model)
    return None if bare == model else bare


def exactly(ref: str, models: Sequence[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Find by `provider/id`, or by the id alone; then without regard to case."""
    for name in (_same, _lower):
        wanted = name(ref)
        for part in (_ref, _id):
            found = tuple(model for model in models if name(part(model)) == wanted)
            if found:
                return found
    return ()


def matching(pattern: str, models: Sequence[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Find by a pattern (`*`, `?`, `[…]`), by a part of the id, such as `sonnet`, or by the name of a provider.

    A part with a digit names a version, and another version is never an answer to that: `opus-4` finds `opus-4` and
    `opus-4-20250514`, but neither `opus-4-5` nor `opus-45`.
    """
    wanted = pattern.lower().strip()
    if not wanted:
        return ()
    if WILD.search(wanted):
        return tuple(
            model
            for model in models
            if fnmatchcase(model.ref.lower(), wanted) or fnmatchcase(model.id.lower(), wanted)
        )
    provider, slash, part = wanted.partition("/")
    if slash:
        return tuple(
            model
            for model in models
            if model.provider.lower() == provider and _has_part(model.id.lower(), part)
        )
    by_id = tuple(model for model in models if _has_part(model.id.lower(), wanted))
    return by_id + tuple(model for model in models if model.provider.lower() == wanted)


def _has_part(model: str, part: str) -> bool:
    if not any(letter.isdecimal() for letter in part):
        return bool(part) and part in model
    part = part.strip("-.:@")
    if not any(letter.isalpha() for letter in part):
        return False  # a number alone says nothing
    before = r"(?<![0-9a-z])(?<!\d[.-])" if part[0].isdecimal() else ""
    # After a version neither more of its number nor a minor version; a date is none, and `-8b` is a size.
    after = r"(?![0-9a-z])(?![.-]\d{1,2}(?![0-9a-z]))" if part[-1].isdecimal() else ""
    return re.search(f"{before}{re.escape(part)}{after}", model) is not None


def next_of(
    choices: Sequence[Named], *, current: str | None, direction: Literal[1, -1]
) -> Named | None:
    """Return the choice after or before the current model, cyclically; None: there is no other.

    Args:
        choices: The models to cycle through, in order.
        current: `provider/id` of the current model. When it is none of them, the first (or last) follows.
        direction: Forwards or backwards.
    """
    refs = [choice.model.ref for choice in choices]
    if not choices or refs == [current]:
        return None
    if current not in refs:
        return choices[0 if direction > 0 else -1]
    return choices[(refs.index(current) + direction) % len(choices)]


def _ref(model: ModelInfo) -> str:
    return model.ref


def _id(model: ModelInfo) -> str:
    return model.id


def _same(text: str) -> str:
    return text


def _lower(text: str) -> str:
    return text.lower()
