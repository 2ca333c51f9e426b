"""Versions of the tables: each migration leads from the version before it to the next."""

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Column, Integer, MetaData, Table, insert, select, update
from sqlalchemy.engine import Connection

from tiller_server.fleet.errors import SchemaRefused
from tiller_server.fleet.store.tables import METADATA

VERSION: Final = Table("fleet_version", MetaData(), Column("version", Integer, primary_key=True))
"""Has one row."""


def migrate(connection: Connection) -> None:
    """Migrate the tables to the newest version.

    Raises:
        SchemaRefused: They are of a later one.
    """
    VERSION.create(connection, checkfirst=True)
    there = connection.execute(select(VERSION.c.version)).scalar()
    newest = len(MIGRATIONS)
    if there is not None and there > newest:
        message = f"the tables of the fleet are of version {there}, and this program knows those up to {newest}; use a newer tiller"
        raise SchemaRefused(message)
    for migration in MIGRATIONS[there or 0 :]:
        migration(connection)
    query = insert(VERSION) if there is None else update(VERSION)
    _ = connection.execute(query.values(version=newest))


def _create_tables(connection: Connection) -> None:
    METADATA.create_all(connection)


MIGRATIONS: Final[Sequence[Callable[[Connection], None]]] = (_create_tables, _create_tables)
"""The second one adds the counters: tables that are there stay as they are."""
