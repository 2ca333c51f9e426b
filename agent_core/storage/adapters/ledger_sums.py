"""Sums over the calls of the ledger."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.storage.ledger import CostQuery, CostSum, Grouping, dollars

_KEYS: Final[Mapping[Grouping, str]] = {
    "day": "day",
    "model": "provider || '/' || model",
    "provider": "provider",
    "folder": "folder",
    "session": "root",
    "purpose": "purpose",
}
_SUMS: Final = """
count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0),
coalesce(sum(cache_write), 0), coalesce(sum(reasoning), 0), coalesce(sum(cost), 0),
coalesce(sum(cost IS NULL), 0), coalesce(sum(CASE WHEN cost IS NULL THEN reserved END), 0),
coalesce(sum(cost IS NULL AND reserved IS NULL), 0), coalesce(sum(cost IS NULL AND status = 'open'), 0)
"""
_Sums = tuple[str, int, int, int, int, int, int, int, int, int, int, int]


def read_sums(
    connection: sqlite3.Connection, query: CostQuery
) -> tuple[Sequence[CostSum], CostSum]:
    """Return the sums of the groups, and the sum of all. Blocking.

    Raises:
        sqlite3.Error: The ledger cannot be read.
    """
    where, values = _where(query)
    key = _KEYS[query.by]
    order = "1" if query.by == "day" else "8 DESC, 1"
    grouped: list[_Sums] = connection.execute(
        f"SELECT {key}, {_SUMS} FROM calls {where} GROUP BY 1 ORDER BY {order}",  # noqa: S608 - constants
        values,
    ).fetchall()
    whole: list[_Sums] = connection.execute(
        f"SELECT '', {_SUMS} FROM calls {where}",  # noqa: S608 - constants
        values,
    ).fetchall()
    return tuple(map(_sum, grouped)), _sum(whole[0])


def _where(query: CostQuery) -> tuple[str, Sequence[str]]:
    terms: list[str] = []
    values: list[str] = []
    for term, value in (
        ("day >= ?", query.since),
        ("folder = ?", query.folder),
        ("root = ?", query.session),
    ):
        if value is not None:
            terms.append(term)
            values.append(value)
    return (f"WHERE {' AND '.join(terms)}" if terms else ""), values


def _sum(sums: _Sums) -> CostSum:
    key, calls, input_, output, read, written, reasoning, cost, unknown, held, unpriced, open_ = (
        sums
    )
    return CostSum(
        key=key,
        calls=calls,
        input=input_,
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=reasoning,
        usd=dollars(cost),
        unknown=unknown,
        at_most_usd=dollars(held),
        unpriced=unpriced,
        open=open_,
    )
