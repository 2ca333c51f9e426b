"""Chooses how long a test runs: small for every change, large for a campaign."""

import os

CAMPAIGN_VARIABLE = "TILLER_CAMPAIGN"


def is_campaign() -> bool:
    """Say whether this run is at full size (`make campaign`)."""
    return os.environ.get(CAMPAIGN_VARIABLE) == "1"  # noqa: TID251 - the switch is the environment


def at_size(*, ci: int, campaign: int) -> int:
    """Return the count for this run; also usable in decorators."""
    return campaign if is_campaign() else ci
