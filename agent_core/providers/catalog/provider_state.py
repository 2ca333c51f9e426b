"""State of a provider, with its facts and whether it can be used."""

from typing import Literal

from agent_core.kernel.values import Value
from agent_core.providers.auth.credentials import ProviderCredentials
from agent_core.providers.catalog.catalogue import ProviderInfo


class ProviderState(Value, frozen=True, kw_only=True):
    """Holds no key."""

    provider: ProviderInfo
    auth: Literal["ok", "missing"]
    source: str | None
    """Where its key comes from: a variable, `keyring`, auth.json; None: it has none."""
    advice: str | None
    """The step needed before the provider can be used; None: none."""


def state_of(provider: ProviderInfo, credentials: ProviderCredentials) -> ProviderState:
    """Look how a provider stands now."""
    advice = credentials.what_to_set()
    return ProviderState(
        provider=provider,
        auth="ok" if advice is None else "missing",
        source=credentials.source(),
        advice=advice,
    )
