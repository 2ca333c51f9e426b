"""One line of what `tiller doctor` found."""

from typing import Literal

from agent_core.kernel.values import Value

CheckStatus = Literal["ok", "note", "missing"]


class Check(Value, frozen=True, kw_only=True):
    """One line of what was found."""

    name: str
    status: CheckStatus
    """`note`: works, and something should be known; `missing`: something does not work."""
    found: str
    advice: str | None = None
    """Next step for the user; None when there is none."""
