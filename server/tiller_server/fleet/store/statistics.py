"""The state of a fleet in numbers, read from its tables."""

from collections.abc import Mapping

from sqlalchemy import func, select

from agent_core.kernel.values import Value
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.admission import DAY_MS
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import WorkerSlot


class FleetStatistics(Value, frozen=True, kw_only=True):
    """Numbers of one moment."""

    now_ms: int
    jobs: Mapping[str, int]
    """By state."""
    posts: Mapping[str, int]
    """By state."""
    queue_age_p95_ms: int
    """Of the jobs that are due; 0 without any."""
    slots: tuple[WorkerSlot, ...]
    refused_writes: int
    """Transactions that a lost lease or fence refused: only after faults."""
    calls: int
    tokens: int
    usd: float
    usd_today: float

    @property
    def living(self) -> int:
        """Slots whose lease is not over."""
        return sum(slot.expires_ms > self.now_ms for slot in self.slots)


def read_statistics(database: FleetDatabase) -> FleetStatistics:
    """Read the numbers of this moment. Blocks."""
    job, post, ledger = tables.JOB, tables.POST, tables.LEDGER
    with database.begin() as connection:
        now_ms = int(connection.execute(select(database.now)).scalar_one())
        jobs = connection.execute(select(job.c.state, func.count()).group_by(job.c.state)).all()
        posts = connection.execute(select(post.c.state, func.count()).group_by(post.c.state)).all()
        is_due = (job.c.state == "queued") & (job.c.due_ms <= now_ms)
        due = int(connection.execute(select(func.count()).where(is_due)).scalar_one())
        oldest = (
            select(job.c.due_ms).where(is_due).order_by(job.c.due_ms).offset(due // 20).limit(1)
        )
        due_ms = connection.execute(oldest).scalar()
        sums = [func.coalesce(func.sum(ledger.c[name]), 0) for name in ("calls", "tokens", "usd")]
        refused = select(tables.COUNTER.c.count).where(
            tables.COUNTER.c.name == tables.REFUSED_WRITES
        )
        refused_writes = int(connection.execute(refused).scalar() or 0)
        spent = tuple(connection.execute(select(*sums)).one())
        today = select(sums[2]).where(ledger.c.at_ms >= now_ms - now_ms % DAY_MS)
        usd_today = float(connection.execute(today).scalar_one())
    return FleetStatistics(
        now_ms=now_ms,
        jobs={row[0]: row[1] for row in jobs},
        posts={row[0]: row[1] for row in posts},
        queue_age_p95_ms=0 if due_ms is None else now_ms - due_ms,
        slots=SlotStore(database).slots(),
        refused_writes=refused_writes,
        calls=int(spent[0]),
        tokens=int(spent[1]),
        usd=float(spent[2]),
        usd_today=usd_today,
    )
