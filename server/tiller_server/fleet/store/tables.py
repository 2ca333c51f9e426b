"""Tables of the fleet, the same on SQLite and PostgreSQL. Times are milliseconds since 1970 by the database's clock."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

METADATA: Final = MetaData()
NUMBER: Final = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database counts up: SQLite does so for `INTEGER` alone."""

CHANGE: Final = Table(
    "change",
    METADATA,
    Column("forge", Text, nullable=False),
    Column("repo", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("forge", "repo", "number"),
)

JOB: Final = Table(
    "job",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("forge", Text, nullable=False),
    Column("repo", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False, default=""),
    Column("cause", Text, nullable=False, default=""),
    Column("provider", Text, nullable=False, default=""),
    Column("prompt", Text, nullable=False, default=""),
    Column("priority", Integer, nullable=False, default=100),
    Column("budget_usd", Float),
    Column("attempts", Integer, nullable=False, default=0),
    Column("round", Integer, nullable=False, default=0),
    Column("slot", Integer),
    Column("fence", BigInteger, nullable=False, default=0),
    Column("due_ms", BigInteger, nullable=False),
    Column("deadline_ms", BigInteger),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger),
    Column("ended_ms", BigInteger),
    Column("result", Text),
    Column("has_transcript", Boolean, nullable=False, default=True),
    Column("engine_round", Integer, nullable=False, default=-1),
    Index("job_by_end", "has_transcript", "ended_ms"),
    Index("job_by_state", "state", "due_ms"),
    Index("job_by_change", "forge", "repo", "number", "state"),
    Index("job_by_org", "org", "state"),
)
"""`engine_round` is the last round that the engine was handed; -1: none."""
JOB_TO_HAND_OVER: Final = Index(
    "job_to_hand_over",
    JOB.c.id,
    postgresql_where=JOB.c.engine_round < JOB.c.round,
    sqlite_where=JOB.c.engine_round < JOB.c.round,
)

SLOT: Final = Table(
    "slot",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("host", Text, nullable=False, default=""),
    Column("boot", Text, nullable=False, default=""),
    Column("pid", Integer, nullable=False, default=0),
    Column("fence", BigInteger, nullable=False, default=0),
    Column("expires_ms", BigInteger, nullable=False, default=0),
    Column("is_drained", Boolean, nullable=False, default=False),
)

SESSION: Final = Table(
    "session",
    METADATA,
    Column("session", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("cwd", Text, nullable=False),
    Column("header", LargeBinary, nullable=False),
    Column("summary", LargeBinary, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("slot", Integer, nullable=False, default=0),
    Column("fence", BigInteger, nullable=False, default=0),
    Column("created_ms", BigInteger, nullable=False),
    Column("modified_ms", BigInteger, nullable=False),
    Index("session_by_folder", "kind", "cwd", "modified_ms"),
)
"""`seq` is the number of the last entry. `slot` and `fence` name the process that has it open; 0: none."""

SESSION_ENTRY: Final = Table(
    "session_entry",
    METADATA,
    Column("session", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("slot", Integer, nullable=False, default=0),
    Column("fence", BigInteger, nullable=False, default=0),
    Column("entry", LargeBinary, nullable=False),
    PrimaryKeyConstraint("session", "seq"),
)

ARTEFACT: Final = Table(
    "artefact",
    METADATA,
    Column("job", NUMBER, ForeignKey("job.id"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("job", "round", "kind"),
)

FINDING: Final = Table(
    "finding",
    METADATA,
    Column("job", NUMBER, ForeignKey("job.id"), nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("severity", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("job", "fingerprint"),
)

POST: Final = Table(
    "post",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("job", NUMBER, ForeignKey("job.id"), nullable=False),
    Column("forge", Text, nullable=False),
    Column("repo", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("target", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("sent_hash", Text, nullable=False, default=""),
    Column("confirmed_hash", Text, nullable=False, default=""),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False, default=""),
    Column("forge_id", Text),
    Column("expected_head", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    UniqueConstraint("forge", "repo", "number", "target", "fingerprint"),
    Index("post_by_job", "job", "state"),
)
"""`sent_hash` is of the text sent last, `confirmed_hash` of that seen on the forge last: another one is a person's edit."""

LEDGER: Final = Table(
    "ledger",
    METADATA,
    Column("id", NUMBER, primary_key=True),
    Column("job", NUMBER, ForeignKey("job.id"), nullable=False),
    Column("repo", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("provider", Text, nullable=False, default=""),
    Column("calls", Integer, nullable=False, default=0),
    Column("tokens", BigInteger, nullable=False, default=0),
    Column("usd", Float, nullable=False, default=0.0),
    Column("at_ms", BigInteger, nullable=False),
    Index("ledger_by_repo", "repo", "at_ms"),
    Index("ledger_by_org", "org", "at_ms"),
)

DELIVERY: Final = Table(
    "delivery",
    METADATA,
    Column("forge", Text, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("forge", "delivery"),
)

COUNTER: Final = Table(
    "counter",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("count", BigInteger, nullable=False, default=0),
)
REFUSED_WRITES: Final = "refused_writes"
"""Name of the counter of transactions that a lost lease or fence refused."""

CIRCUIT: Final = Table(
    "circuit",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("failures", Integer, nullable=False, default=0),
    Column("open_until_ms", BigInteger, nullable=False, default=0),
    Column("reason", Text, nullable=False, default=""),
)
