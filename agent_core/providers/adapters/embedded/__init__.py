"""The embedded model: repairs failing Python tests by rules, without a network or a key."""

from agent_core.providers.adapters.embedded.model import EMBEDDED_FACTS, EmbeddedModel

__all__ = ["EMBEDDED_FACTS", "EmbeddedModel"]
