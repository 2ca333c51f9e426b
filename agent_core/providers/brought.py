"""Models that extensions bring: entries as in models.json, ways to log in, and adapters of their own."""

from collections.abc import Callable, Mapping
from dataclasses import field

from agent_core.kernel.records import dataclass
from agent_core.providers.access import Access
from agent_core.providers.models_file import ProviderShape
from agent_core.providers.oauth_facts import OAuthFacts
from agent_core.providers.port import Model, ModelFacts

Adapter = Callable[[ModelFacts, Access], Model]
"""Makes a model ready to be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Everything by the name of the provider."""

    shapes: Mapping[str, ProviderShape] = field(default_factory=dict[str, ProviderShape])
    oauth: Mapping[str, OAuthFacts] = field(default_factory=dict[str, OAuthFacts])
    adapters: Mapping[str, Adapter] = field(default_factory=dict[str, Adapter])
    """Answer in the place of those of the wire format."""


NOTHING = Brought()
