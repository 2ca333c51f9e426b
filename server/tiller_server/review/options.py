"""Request for a review, and the interface by which its progress is followed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core.events import Budgets, EventEnvelope
from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from tiller_server.review.findings.rejections import RejectedFinding
from tiller_server.review.findings.result import Review
from tiller_server.review.git.file_filter import ReviewFileFilter
from tiller_server.review.model.chunks import PART_CHARS

MOST_FINDINGS = 20


class ReviewOrder(Value, frozen=True, kw_only=True):
    """Which change to look at, and what to keep of what is found."""

    base: str | None = None
    """A branch, tag or commit; None: the base by the variables of CI or by the repository."""
    head: str = "HEAD"
    """The same, or `WORKING_TREE`."""
    scope: ReviewFileFilter = msgspec.field(default_factory=ReviewFileFilter)
    wishes: str = ""
    """Words for the model, of whoever asks."""
    most_findings: int = MOST_FINDINGS
    least_confidence: float = 0.3
    budgets: Budgets = msgspec.field(default_factory=Budgets)
    """For the whole review."""
    ceiling_usd: float | None = None
    """A budget of money that is only kept when the model has a price; `budgets.usd` is kept always."""
    accepted: frozenset[str] | None = None
    """Fingerprints of findings that are not shown; None: as the baseline file of the base says."""
    rejected: tuple[RejectedFinding, ...] = ()
    """Findings that a person rejected before; they are not shown."""
    earlier: Review | None = None
    """An earlier review of the same change: only what came after it is looked at."""
    part_chars: int = PART_CHARS


class ReviewCancellation(Struct):
    """Request to end a review with its results so far. The caller also aborts the current run; no other is started."""

    asked: bool = False


class ReviewWatcher(Protocol):
    """Follows a review while it is made."""

    def opened(self, session: AgentSession) -> None:
        """Learn in which session the model is asked; aborting its run ends the review with what there is."""
        ...

    def part(self, number: int, count: int) -> None:
        """Learn that a part is looked at, from 1; after the last one comes the summary."""
        ...

    def see(self, stamped: EventEnvelope) -> None:
        """Learn what goes on."""
        ...

    def texts(self, lines: Mapping[str, Sequence[str]]) -> None:
        """Learn by path the lines of the files in which something was found."""
        ...


class NullReviewWatcher:
    """Watcher that ignores everything."""

    def opened(self, session: AgentSession) -> None:
        """Ignore it."""
        _ = session

    def part(self, number: int, count: int) -> None:
        """Ignore it."""
        _ = number, count

    def see(self, stamped: EventEnvelope) -> None:
        """Ignore it."""
        _ = stamped

    def texts(self, lines: Mapping[str, Sequence[str]]) -> None:
        """Ignore it."""
        _ = lines
