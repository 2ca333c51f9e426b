"""Asks the index in SQLite. Everything here blocks."""

import sqlite3
from collections.abc import Mapping, Sequence

from agent_core.kernel import EntryId, json
from agent_core.kernel.values import Value
from agent_core.storage.adapters.index.tables import rows
from agent_core.storage.adapters.index.tokenizer import Term, match_form, snippet, terms
from agent_core.storage.index import Hit
from agent_core.storage.port import SessionSummary

TITLE_WEIGHT = 4.0
"""How much more a word in the title says than one that was said."""
FRESH_MS = 30 * 24 * 3600 * 1000
"""A session of this age counts half as much more for its newness as one of today."""

# The rank of FTS5 is better the smaller it is, and cannot be used under GROUP BY directly.
_FIND = """
WITH found AS MATERIALIZED (SELECT rowid AS id, -rank AS score FROM words WHERE words MATCH :term)
SELECT files.path, pieces.id, max(found.score * CASE pieces.is_title WHEN 1 THEN :weight ELSE 1 END)
FROM found JOIN pieces ON pieces.id = found.id JOIN files ON files.id = pieces.file
WHERE :cwd IS NULL OR files.cwd = :cwd
GROUP BY files.id
"""


class _Found(Value, frozen=True):
    """The best place of a term in a session."""

    piece: int
    score: float


def listed(connection: sqlite3.Connection, cwd: str | None) -> tuple[SessionSummary, ...]:
    """Return the sessions, newest first."""
    here = None if cwd is None else json.scrub(cwd)
    found = [row.summary for row in rows(connection).values() if row.summary]
    chosen = [one for one in found if here is None or one.cwd == here]
    return tuple(sorted(chosen, key=lambda one: (one.modified_ms, one.session), reverse=True))


def search(
    connection: sqlite3.Connection, query: str, *, cwd: str | None, limit: int, offset: int
) -> tuple[Hit, ...]:
    """Find sessions that hold all terms of the query, best first."""
    wanted = terms(query)
    if not wanted:
        return ()
    here = None if cwd is None else json.scrub(cwd)
    found = [_find(connection, term, here) for term in wanted]
    everywhere = set(found[0]).intersection(*found[1:])
    summaries = {path: row.summary for path, row in rows(connection).items() if row.summary}
    now_ms = max(
        (summaries[path].modified_ms for path in everywhere if path in summaries), default=0
    )
    scored = sorted(
        (
            (_score(path, found, summaries[path], now_ms), path)
            for path in everywhere
            if path in summaries
        ),
        key=lambda one: (-one[0], -summaries[one[1]].modified_ms, one[1]),
    )
    chosen = [path for _, path in scored[offset : offset + limit]]
    return tuple(_hit(connection, summaries[path], path, found, wanted) for path in chosen)


def _find(connection: sqlite3.Connection, term: Term, cwd: str | None) -> dict[bytes, _Found]:
    found: list[tuple[bytes, int, float]] = connection.execute(
        _FIND, {"term": match_form(term), "weight": TITLE_WEIGHT, "cwd": cwd}
    ).fetchall()
    return {path: _Found(piece, score) for path, piece, score in found}


def _score(
    path: bytes,
    found: Sequence[Mapping[bytes, _Found]],
    summary: SessionSummary,
    now_ms: int,
) -> float:
    fits = sum(places[path].score for places in found)
    age_ms = max(0, now_ms - summary.modified_ms)
    return fits * (1 + FRESH_MS / (FRESH_MS + age_ms))


def _hit(
    connection: sqlite3.Connection,
    summary: SessionSummary,
    path: bytes,
    found: Sequence[Mapping[bytes, _Found]],
    wanted: Sequence[Term],
) -> Hit:
    best = max((places[path] for places in found), key=lambda one: one.score)
    shown_of: list[tuple[str | None, str]] = connection.execute(
        "SELECT entry, text FROM pieces WHERE id = ?", (best.piece,)
    ).fetchall()
    entry, text = shown_of[0] if shown_of else (None, "")
    shown, marks = snippet(text, wanted)
    return Hit(
        summary=summary,
        entry=None if entry is None else EntryId(entry),
        snippet=shown,
        marks=marks,
    )
