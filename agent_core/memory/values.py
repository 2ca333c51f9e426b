"""Entries of the memory, and where they are kept."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import translate
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import msgspec

from agent_core.kernel import rfc3339
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem

MemberT = TypeVar("MemberT", bound=str)
MemoryKind: TypeAlias = Literal["fact", "preference", "decision", "lesson", "rejected-finding"]
MemoryTrust: TypeAlias = Literal["stated", "observed", "derived"]
"""`stated`: a person wrote it; `derived`: a model proposed it, and a person accepted it; `observed`: a program saw it."""
MemoryOrigin: TypeAlias = Literal["user", "tool", "web"]

KINDS: Final[tuple[MemoryKind, ...]] = get_args(MemoryKind)
TRUSTS: Final[tuple[MemoryTrust, ...]] = get_args(MemoryTrust)
"""From the most to the least reliable."""
ORIGINS: Final[tuple[MemoryOrigin, ...]] = get_args(MemoryOrigin)
MOST_CHARS: Final = 500
"""Of the text of an entry."""
DAY_CHARS: Final = 10
NO_FIELDS: Final[Mapping[str, str]] = {}


class MemoryScope(Value, frozen=True):
    """The entries of the user, or of one project."""

    project: str | None = None
    """Key of the project; None: the user's own entries."""

    @property
    def name(self) -> str:
        """`user` or `project`."""
        return "user" if self.project is None else "project"


USER: Final = MemoryScope()


class MemoryDraft(Value, frozen=True, kw_only=True):
    """An entry before it is stored."""

    text: str
    kind: MemoryKind = "fact"
    path: str | None = None
    """Glob of the files of the project that it is about; None: all."""
    origin: MemoryOrigin = "user"
    session: str | None = None
    """Session in which it was written; None: outside of any."""
    source: str | None = None
    """Id of the entry of that session."""
    trust: MemoryTrust = "stated"
    expires: str | None = None
    """The last day, `YYYY-MM-DD`; None: it does not expire."""
    fields: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Further fields of its kind, such as the fingerprint of a rejected finding."""


class MemoryEntry(MemoryDraft, frozen=True, kw_only=True):
    """An entry as it is stored."""

    id: str
    scope: MemoryScope
    created: str | None = None
    """The day, `YYYY-MM-DD`; None: a person wrote the entry and left it out."""
    used: str | None = None
    """The last day on which a model read it through the tool."""
    line: int
    """Line of the file where it begins, from 1."""

    def header(self) -> Mapping[str, str]:
        """Return the fields beside the text by their names in the file, without those that have no value."""
        fields = {
            "id": self.id,
            "kind": self.kind,
            "path": self.path,
            "origin": self.origin,
            "session": self.session,
            "source": self.source,
            "trust": self.trust,
            "created": self.created,
            "used": self.used,
            "expires": self.expires,
            **self.fields,
        }
        return {name: value for name, value in fields.items() if value}

    def is_expired(self, today: str) -> bool:
        """Return whether its last day is over."""
        return self.expires is not None and self.expires < today

    def is_about(self, path: str) -> bool:
        """Return whether a file of the project is among those that it is about."""
        return self.path is None or re.match(translate(self.path), path) is not None


class MemoryFile(Value, frozen=True, kw_only=True):
    """The content of a memory file."""

    entries: tuple[MemoryEntry, ...] = ()
    problems: tuple[LoadProblem, ...] = ()
    """Parts that could not be read; the rest works."""


def one_of(choices: Iterable[MemberT], value: object) -> MemberT | None:
    """Return the choice that a value names; None: it names none."""
    return next((one for one in choices if one == value), None)


def day_of(at_ms: int) -> str:
    """Return the day of a time in UTC, `YYYY-MM-DD`."""
    return rfc3339(at_ms)[:DAY_CHARS]


def is_day(text: str) -> bool:
    """Return whether a text is a day as `YYYY-MM-DD`."""
    if len(text) != DAY_CHARS:
        return False
    try:
        _ = date.fromisoformat(text)
    except ValueError:
        return False
    return True
