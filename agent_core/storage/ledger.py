"""The port of the ledger: a row per model call, sums over rows, and limits of what a day may cost.

Money is an integer of picodollars (10⁻¹² US dollars): a price of 0.0375 dollars per million tokens is 37,500 for one.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, Protocol

from agent_core.events.values import CallPurpose
from agent_core.kernel import RunId, SessionId, TurnId
from agent_core.kernel.values import Value

PICO = Decimal(10**12)
CallStatus = Literal["open", "completed", "failed", "cancelled"]
"""`open`: the call goes on, or its process ended without writing its end."""
CallOrigin = Literal["call", "imported"]
"""`imported`: from a session file that is older than the ledger."""
Grouping = Literal["day", "model", "provider", "folder", "session", "purpose"]


class CallRow(Value, frozen=True, kw_only=True):
    """One model call."""

    id: str
    at_ms: int
    """When it began."""
    day: str
    """The same as a date of this machine's time zone."""
    session: SessionId
    root: SessionId
    """Session of the user: that of a task is the session that gave it."""
    run: RunId | None
    turn: TurnId | None
    folder: str
    purpose: CallPurpose
    provider: str
    model: str
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    price: str | None
    """Version of the price list that counted; None: the model has no prices."""
    cost: int | None = None
    """Picodollars; None: unknown."""
    reserved: int | None
    """The most that it can cost at list prices, in picodollars; None: unknown."""
    first_ms: int | None = None
    """Time to the first part of the answer."""
    total_ms: int | None = None
    status: CallStatus = "open"
    origin: CallOrigin = "call"


class SpendingLimit(Value, frozen=True, kw_only=True):
    """Limit of what the calls of one day may cost."""

    setting: str
    """Key of the setting, for messages."""
    usd: float
    day: str
    folder: str | None = None
    """Only calls for this folder; None: all."""


class CostQuery(Value, frozen=True, kw_only=True):
    """Which sums are wanted."""

    by: Grouping = "day"
    since: str | None = None
    """First day, as `YYYY-MM-DD`."""
    folder: str | None = None
    session: SessionId | None = None
    """Calls of this session and its tasks."""


class CostSum(Value, frozen=True, kw_only=True):
    """Sum over the calls of a group."""

    key: str
    calls: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    usd: Decimal
    """Cost of the calls whose cost is known."""
    unknown: int
    """Calls whose cost is not known."""
    at_most_usd: Decimal
    """The most that the calls of unknown cost can have cost, without those that have no price."""
    unpriced: int
    """Calls among the unknown that have no price."""
    open: int
    """Calls among the unknown whose end was never written."""


class CostReport(Value, frozen=True, kw_only=True):
    """Sums of the ledger."""

    by: Grouping
    sums: Sequence[CostSum]
    """By day: oldest first; otherwise the most expensive first."""
    total: CostSum
    problems: Sequence[str] = ()
    """Rows that are missing or wait, one sentence each."""


class CallLedger(Protocol):
    """Keeps the rows of model calls. A ledger that cannot be written never stops a call: its rows wait."""

    def reserve(self, row: CallRow) -> None:
        """Queue the row of a call that begins; returns at once."""
        ...

    async def reserve_within(self, row: CallRow, limits: Sequence[SpendingLimit]) -> str | None:
        """Write the row of a call that begins unless a limit is used up; return why it may not begin, or None."""
        ...

    async def settle(self, row: CallRow) -> None:
        """Write the row of a call that has ended; returns when it is written or kept to be written later."""
        ...

    async def report(self, query: CostQuery) -> CostReport:
        """Return sums over the calls."""
        ...


def day_of(at_ms: int) -> str:
    """Return the date of a time in this machine's time zone."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d")


def dollars(pico: int) -> Decimal:
    """Return an amount in US dollars, exactly."""
    return Decimal(pico) / PICO


def picodollars(usd: float | Decimal) -> int:
    """Return an amount in picodollars; of a binary fraction that of its shortest decimal form."""
    return round(Decimal(str(usd)) * PICO)
