"""Memory files: Markdown with front matter per entry. Pure.

Reading is tolerant: a part that cannot be read is a problem with its line, and the entries around it are used. Writing
changes the lines of one entry only, so everything else stays as people wrote it.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from agent_core.memory.values import (
    KINDS,
    MOST_CHARS,
    NO_FIELDS,
    ORIGINS,
    TRUSTS,
    MemberT,
    MemoryEntry,
    MemoryFile,
    MemoryScope,
    is_day,
    one_of,
)
from agent_core.resources.load_result import LoadProblem

FENCE: Final = "---"
RULE: Final = "***"
"""Stands for a line of the text that would be taken for a fence."""
MOST_HEADER_LINES: Final = 30
ID_CHARS: Final = 8
SHOWN_CHARS: Final = 40
TITLES: Final[Mapping[str, str]] = {
    "user": "# What Tiller remembers for you in all projects",
    "project": "# What Tiller remembers in this project",
}
OWN_FIELDS: Final = frozenset(
    {"id", "kind", "path", "origin", "session", "source", "trust", "created", "used", "expires"}
)
FINDING_FIELDS: Final = frozenset({"fingerprint", "rule", "file", "sketch"})
_FIELD: Final = re.compile(r"\s*([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*?)\s*$")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


class _Part(Struct, kw_only=True):
    """A part of a file that begins with a fence."""

    start: int
    """Index of its first line."""
    end: int = 0
    """Index behind its last line."""
    text_at: int = 0
    """Index of the first line of the text."""
    fields: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Value and index of the line, by name."""
    problem: tuple[int, str] | None = None


class _Invalid(Exception):
    """A part cannot be used."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index
        self.why = why


def read_memory(text: str, *, scope: MemoryScope, path: Path | None = None) -> MemoryFile:
    """Return the entries of a memory file, and the parts that cannot be read.

    Args:
        text: The content of the file.
        scope: Scope of the entries.
        path: Path of the file, for the problems.
    """
    lines = text.splitlines()
    entries: list[MemoryEntry] = []
    problems: list[LoadProblem] = []
    lines_by_id: dict[str, int] = {}

    def report(index: int, why: str) -> None:
        problems.append(LoadProblem(message=why, path=path, line=index + 1))

    for part in _parts(lines):
        try:
            entry = _entry(part, lines, scope)
        except _Invalid as error:
            report(error.index, error.why)
            continue
        if (first := lines_by_id.setdefault(entry.id, entry.line)) != entry.line:
            report(
                part.start,
                f"the id {entry.id!r} is that of line {first} too; this entry is not used",
            )
            continue
        for name in (*part.fields,):
            if name not in OWN_FIELDS | FINDING_FIELDS:
                report(part.fields[name][1], f"the field {name!r} is unknown and not used")
        entries.append(entry)
    return MemoryFile(entries=tuple(entries), problems=tuple(problems))


def with_entry(text: str, entry: MemoryEntry) -> str:
    """Return a file with one more entry at its end."""
    before = text.rstrip() if text.strip() else TITLES[entry.scope.name]
    return f"{before}\n\n{_written(entry)}\n"


def without_entries(text: str, ids: Collection[str]) -> str:
    """Return a file without some entries; everything else stays as it is."""
    lines = text.splitlines(keepends=True)
    plain = [line.rstrip("\r\n") for line in lines]
    left = [True] * len(lines)
    for part in _parts(plain):
        if part.problem is None and _id(part, plain) in ids:
            left[part.start : part.end] = [False] * (part.end - part.start)
    return "".join(line for line, keep in zip(lines, left, strict=True) if keep)


def with_use(text: str, ids: Collection[str], day: str) -> str:
    """Return a file in which some entries were last used on a day."""
    lines = text.splitlines(keepends=True)
    plain = [line.rstrip("\r\n") for line in lines]
    for part in reversed(list(_parts(plain))):
        if part.problem is not None or _id(part, plain) not in ids:
            continue
        if "used" in part.fields:
            index = part.fields["used"][1]
            end = lines[index][len(plain[index]) :]
            lines[index] = f"used: {day}{end}"
        else:
            lines.insert(part.text_at - 1, f"used: {day}\n")
    return "".join(lines)


def _parts(lines: Sequence[str]) -> Iterator[_Part]:
    """Return the parts that begin with a fence; text before the first is nobody's entry."""
    begun: _Part | None = None
    index = 0
    while index < len(lines):
        part = _header(lines, index) if lines[index].strip() == FENCE else None
        if part is None:
            index += 1
            continue
        if begun is not None:
            begun.end = index
            yield begun
        begun, index = part, part.text_at
    if begun is not None:
        begun.end = len(lines)
        yield begun


def _header(lines: Sequence[str], start: int) -> _Part | None:
    """Return the part that begins at a fence; None: it is a rule in a text."""
    part = _Part(start=start)
    last = min(len(lines), start + 1 + MOST_HEADER_LINES)
    for index in range(start + 1, last):
        line = lines[index]
        if line.strip() == FENCE:
            part.text_at = index + 1
            return part if part.fields else None
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _FIELD.match(line)
        if match is None or (not part.fields and match[1].lower() not in OWN_FIELDS):
            if not part.fields:
                return None
            shown = line.strip()[:SHOWN_CHARS]
            why = f"{shown!r} is no 'name: value' and no closing {FENCE}; this entry is not used"
            part.text_at, part.problem = index, (index, why)
            return part
        part.fields[match[1].lower()] = (match[2], index)
    if not part.fields:
        return None
    why = f"the front matter has no closing {FENCE}; this entry is not used"
    part.text_at, part.problem = last, (start, why)
    return part


def _id(part: _Part, lines: Sequence[str]) -> str:
    """Return the id of an entry; one that a person wrote without an id is named by its text."""
    named = part.fields.get("id", ("", 0))[0]
    if named:
        return named
    text = _text(part, lines)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:ID_CHARS]


def _text(part: _Part, lines: Sequence[str]) -> str:
    return "\n".join(lines[part.text_at : part.end]).strip()


def _entry(part: _Part, lines: Sequence[str], scope: MemoryScope) -> MemoryEntry:
    if part.problem is not None:
        raise _Invalid(*part.problem)
    text, id_ = _text(part, lines), _id(part, lines)
    if _ID.fullmatch(id_) is None:
        raise _Invalid(part.fields["id"][1], f"the id {id_[:SHOWN_CHARS]!r} is not made of letters and digits; this entry is not used")  # fmt: skip
    if not text:
        raise _Invalid(part.start, "the entry has no text; it is not used")
    if len(text) > MOST_CHARS:
        raise _Invalid(part.text_at, f"the text has {len(text)} characters, at most {MOST_CHARS} are allowed; this entry is not used")  # fmt: skip
    kind = _choice(part, "kind", KINDS)
    return MemoryEntry(
        id=id_,
        scope=scope,
        text=text,
        kind=kind,
        path=part.fields.get("path", ("", 0))[0] or None,
        origin=_choice(part, "origin", ORIGINS),
        session=part.fields.get("session", ("", 0))[0] or None,
        source=part.fields.get("source", ("", 0))[0] or None,
        trust=_choice(part, "trust", TRUSTS),
        created=_day(part, "created"),
        used=_day(part, "used"),
        expires=_day(part, "expires"),
        fields={name: value for name, (value, _) in part.fields.items() if name in FINDING_FIELDS}
        if kind == "rejected-finding"
        else NO_FIELDS,
        line=part.start + 1,
    )


def _choice(part: _Part, name: str, choices: Sequence[MemberT]) -> MemberT:
    """Return the value of a field; without it, the first choice."""
    value, index = part.fields.get(name, ("", 0))
    if not value:
        return choices[0]
    if (choice := one_of(choices, value)) is not None:
        return choice
    raise _Invalid(index, f"{name} {value[:SHOWN_CHARS]!r} is none of {', '.join(choices)}; this entry is not used")  # fmt: skip


def _day(part: _Part, name: str) -> str | None:
    value, index = part.fields.get(name, ("", 0))
    if value and not is_day(value):
        raise _Invalid(index, f"{name} {value[:SHOWN_CHARS]!r} is no day as 2026-01-31; this entry is not used")  # fmt: skip
    return value or None


def _written(entry: MemoryEntry) -> str:
    header = [f"{name}: {' '.join(value.split())}" for name, value in entry.header().items()]
    text = [RULE if line.strip() == FENCE else line for line in entry.text.splitlines()]
    return "\n".join([FENCE, *header, FENCE, *text])
