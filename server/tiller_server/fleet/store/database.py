"""Connection to the database of the fleet: SQLite on one machine, PostgreSQL for many."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Engine,
    create_engine,
    event,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError as PoolTimeout,
)
from sqlalchemy.sql import cast, literal_column

from tiller_server.fleet.errors import FenceLost, FleetError
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.migrations import migrate

Now = Callable[[Engine], ColumnElement[int]]
"""Returns an expression for the time in milliseconds since 1970."""
LOCK_WAIT_S: Final = 15
"""A statement waits this long for a lock of another connection."""
POSTGRES_ARGUMENTS: Final[Mapping[str, object]] = {
    "connect_timeout": LOCK_WAIT_S,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 5,
    "tcp_user_timeout": 20_000,
    # A worker that is stopped in a transaction would hold its locks as long as it is stopped.
    "options": "-c idle_in_transaction_session_timeout=5000",
}
MIGRATION_LOCK: Final = 0x7469_6C6C
OUTAGES: Final = (OperationalError, InterfaceError, InternalError, PoolTimeout)
"""Errors of a database that is gone, restarts, is full or is read-only; others are faults of a statement."""
ADMISSION_LOCK: Final = 0x7469_6C6D
"""Names of advisory locks of PostgreSQL."""


def database_now(engine: Engine) -> ColumnElement[int]:
    """Return the time of the database: no clock of a worker is asked."""
    if engine.dialect.name == "sqlite":
        return literal_column("CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")
    return cast(func.floor(func.extract("epoch", func.clock_timestamp()) * 1000), BigInteger)


class FleetDatabase:
    """Transactions on the tables. The methods block: callers on an event loop use a thread."""

    def __init__(self, url: str, *, now: Now = database_now) -> None:
        """Connect lazily.

        Args:
            url: `sqlite:////path/to/file` or `postgresql://user@host:port/name`.
            now: Clock, for programs that replay another time than the present.
        """
        parsed = make_url(url)
        self.is_sqlite: Final = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = create_engine(parsed, connect_args={"timeout": LOCK_WAIT_S})
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        else:
            self.engine = create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                connect_args=dict(POSTGRES_ARGUMENTS),
            )
        self.now: Final = now(self.engine)

    @contextmanager
    def begin(self) -> Generator[Connection]:
        """Open a transaction that is committed at the end of the block, and rolled back on an exception.

        One that a lost fence ends is counted as a refused write.
        """
        try:
            with self.engine.begin() as connection:
                yield connection
        except FenceLost:
            with suppress(SQLAlchemyError), self.engine.begin() as connection:
                self._count(connection, tables.REFUSED_WRITES)
            raise

    def _count(self, connection: Connection, name: str) -> None:
        counter = tables.COUNTER
        self.serialize_admissions(connection)
        raised = update(counter).where(counter.c.name == name).values(count=counter.c.count + 1)
        if not connection.execute(raised).rowcount:
            _ = connection.execute(insert(counter).values(name=name, count=1))

    def serialize_admissions(self, connection: Connection) -> None:
        """Lock admissions for other connections until this transaction has ended."""
        if not self.is_sqlite:  # there a transaction has the whole database
            _ = connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": ADMISSION_LOCK})

    def migrate(self) -> None:
        """Migrate the tables to the version of this program; several processes may do so at once.

        Raises:
            SchemaRefused: They are of a later version.
            FleetError: The database cannot be reached, or a migration failed.
        """
        try:
            with self.begin() as connection:
                if not self.is_sqlite:
                    lock = text("SELECT pg_advisory_xact_lock(:n)")
                    _ = connection.execute(lock, {"n": MIGRATION_LOCK})
                migrate(connection)
        except SQLAlchemyError as error:
            shown = self.engine.url.render_as_string(hide_password=True)
            message = f"the database of the fleet at {shown} cannot be used: {reason_of(error)}"
            raise FleetError(message) from error

    def size_bytes(self) -> int:
        """Return the size of the database."""
        query = (
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            if self.is_sqlite
            else "SELECT pg_database_size(current_database())"
        )
        with self.begin() as connection:
            return int(connection.execute(text(query)).scalar_one())

    def now_ms(self) -> int:
        """Return the time of the database."""
        with self.begin() as connection:
            return int(connection.execute(select(self.now)).scalar_one())

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_database(url: str) -> FleetDatabase:
    """Open the database of a fleet, whose tables may not be there yet; the folder of a file is made.

    Raises:
        FleetError: The URL cannot be read, or the folder cannot be made.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            Path(parsed.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FleetDatabase(url)
    except (OSError, SQLAlchemyError) as error:
        message = f"the database of the fleet cannot be opened: {error}"
        raise FleetError(message) from error


def reason_of(error: SQLAlchemyError) -> str:
    """Return the reason of the database's driver, on one line."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(cause).split())


def time_of(ms: int) -> str:
    """Return a time of the database for people, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun by us
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    _ = connection.exec_driver_sql("BEGIN IMMEDIATE")
