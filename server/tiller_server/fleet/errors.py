"""Errors of the fleet."""

from agent_core.kernel.errors import TillerError


class FleetError(TillerError):
    """An operation of the fleet failed."""


class JobUnknown(FleetError):
    """There is no job of that id."""


class JobEnded(FleetError):
    """The job is in a final state, so that nothing more is done for it."""


class JobSpent(FleetError):
    """The job is not begun any more: its deadline is over, or it was tried too often. Its worker reports that and ends it."""


class JobNotRepeatable(FleetError):
    """The job is not in a state from which it can be tried again."""


class JobDeferred(FleetError):
    """The job cannot go on for now because of an outage elsewhere; it is queued again without an attempt."""

    def __init__(self, reason: str, *, wait_ms: int) -> None:
        super().__init__(reason)
        self.wait_ms = wait_ms


class FenceLost(FleetError):
    """The slot belongs to another process now: this one writes nothing more and ends."""


class SlotMissing(FleetError):
    """No slot is free."""


class SchemaRefused(FleetError):
    """The tables are of a later version than this program, or no migration leads from theirs to ours."""


class BranchMoved(FleetError):
    """The branch on the forge is at another commit than this fleet pushed last."""


class PushRefused(FleetError):
    """The forge does not let the token push the branch."""
