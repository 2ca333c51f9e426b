"""Limits that a job meets before it starts."""

from collections.abc import Mapping

import msgspec

from agent_core.kernel.values import Value

MAX_ATTEMPTS = 3


class FleetLimits(Value, frozen=True, kw_only=True):
    """How many jobs run at once, and how much they may cost a day. Zero: no limit."""

    per_repo: int = 1
    per_org: int = 16
    per_forge: int = 0
    per_provider: int = 0
    usd_per_repo_day: float = 0
    usd_per_org_day: float = 0
    orgs: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Jobs at once of an organisation, instead of `per_org`."""
    max_attempts: int = MAX_ATTEMPTS
