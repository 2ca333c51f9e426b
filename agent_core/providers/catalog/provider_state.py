"""State of a provider, with its facts and whether it can be used."""

from typing import Literal

from agent_core.kernel.values import Value
from agent_core.providers.auth.credentials import Credentials
from agent_core.providers.catalog.catalogue import ProviderFacts


class ProviderState(Value, frozen=True, kw_only=True):
    """Holds no key."""

    facts: ProviderFacts
    auth: Literal["ok", "missing"]
    source: str | None
    """Where its key comes from: a variable, `keyring`, auth.json; None: it has none."""
    advice: str | None
    """The step needed before the provider can be used; None: none."""


def state_of(facts: ProviderFacts, credentials: Credentials) -> ProviderState:
    """Look how a provider stands now."""
    advice = credentials.what_to_set()
    return ProviderState(
        facts=facts,
        auth="ok" if advice is None else "missing",
        source=credentials.source(),
        advice=advice,
    )
