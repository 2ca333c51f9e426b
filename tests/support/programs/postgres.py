"""A PostgreSQL cluster of a test run, made with Debian's programs as an unprivileged user and gone with the run."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from tests.support.mcp.mcp_office import free_port

FOLDERS = Path("/usr/lib/postgresql")
MISSING = f"PostgreSQL is not installed in {FOLDERS}: run `make postgres-setup`"
WAIT_S = 60.0


def programs() -> Path | None:
    """Return the folder of the newest release's programs."""
    found = [one.parent for one in FOLDERS.glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


@dataclass(slots=True, kw_only=True)
class PostgresCluster:
    """A cluster on a loopback port. It may be stopped and started again."""

    programs: Path
    folder: Path
    port: int = field(default_factory=free_port)
    numbers: "count[int]" = field(default_factory=count)

    @classmethod
    def make(cls, folder: Path, *, is_durable: bool) -> "PostgresCluster":
        """Create a cluster and start it; `is_durable` waits for the disk, as after a crash of the machine it has to."""
        there = programs()
        assert there is not None, MISSING
        cluster = cls(programs=there, folder=folder)
        user = _unprivileged()
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        cluster._call("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-N")
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as conf:
            _ = conf.write(
                f"listen_addresses = '127.0.0.1'\nport = {cluster.port}\nmax_connections = 200\n"
                f"unix_socket_directories = ''\nfsync = {'on' if is_durable else 'off'}\nshared_buffers = 32MB\n"
            )
        cluster.start()
        return cluster

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._control("start", "-l", str(self.folder / "log"))

    def restart_immediately(self) -> None:
        """Restart it as after a crash: connections are cut, open transactions are lost."""
        self._control("restart", "-m", "immediate", "-l", str(self.folder / "log"))

    def wait_until_ready(self) -> None:
        """Wait until it takes connections again, after it restarted itself."""
        end_s = time.monotonic() + WAIT_S
        while True:
            try:
                _ = self.query("SELECT 1")
            except psycopg.OperationalError:
                assert time.monotonic() < end_s, "the server does not come back"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop it and cut its connections."""
        self._control("stop", "-m", "immediate")

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Return the address of a database, also behind another port."""
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    def make_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"fleet{next(self.numbers)}"
        _ = self.query(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database and cut its connections."""
        _ = self.query(f"DROP DATABASE {name} WITH (FORCE)")

    def kill_backend(self, database: str, *, turn: int) -> None:
        """Kill the process of one connection; the server restarts as after a crash of it, and has begun to when this returns."""
        query = "SELECT pid FROM pg_stat_activity WHERE datname = %s ORDER BY pid"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            rows = connection.execute(query.encode(), (database,)).fetchall()
            if not rows:
                return
            os.kill(rows[turn % len(rows)][0], signal.SIGKILL)
            with suppress(psycopg.OperationalError):
                # The restart ends this connection, too.
                _ = connection.execute(b"SELECT pg_sleep(%d)" % WAIT_S)
                message = f"the server did not restart within {WAIT_S} s of the end of a backend"
                raise AssertionError(message)

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Run a statement outside of a transaction, and return its rows."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def _control(self, action: str, *options: str) -> None:
        self._call("pg_ctl", action, "-w", "-D", str(self.folder / "data"), *options)

    def _call(self, program: str, *arguments: str) -> None:
        user = _unprivileged()
        log = self.folder / "calls"
        with log.open("ab") as output:
            done = subprocess.run(
                [self.programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=WAIT_S,
                check=False,
                cwd=self.folder,
                user=None if user is None else user.pw_uid,
                group=None if user is None else user.pw_gid,
                extra_groups=None if user is None else [],
            )
        assert done.returncode == 0, log.read_text(errors="replace")[-2000:]


def new_folder() -> Path:
    """Create the folder of a cluster: other users cannot enter those of pytest."""
    return Path(tempfile.mkdtemp(prefix="tiller-postgres-"))


def remove(cluster: PostgresCluster) -> None:
    """Stop a cluster and remove its folder."""
    try:
        cluster.stop()
    finally:
        shutil.rmtree(cluster.folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that the server runs as, which must not be root; None: this one."""
    if os.getuid() != 0:
        return None
    names = {one.pw_name: one for one in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
