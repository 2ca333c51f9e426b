"""Models that extensions bring: entries as in models.json, ways to log in, and adapters of their own."""

from collections.abc import Callable, Mapping

import msgspec

from agent_core.kernel.values import Value
from agent_core.providers.auth.authenticator import Authenticator
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.catalog.models_file import ProviderShape
from agent_core.providers.model import Model, ModelInfo

ExtensionModelFactory = Callable[[ModelInfo, Authenticator], Model]
"""Makes a model ready to be asked."""


class ExtensionModels(Value, frozen=True, kw_only=True):
    """Everything by the name of the provider."""

    shapes: Mapping[str, ProviderShape] = msgspec.field(default_factory=dict[str, ProviderShape])
    oauth: Mapping[str, OAuthFacts] = msgspec.field(default_factory=dict[str, OAuthFacts])
    adapters: Mapping[str, ExtensionModelFactory] = msgspec.field(
        default_factory=dict[str, ExtensionModelFactory]
    )
    """Answer in the place of those of the wire format."""


NOTHING = ExtensionModels()
