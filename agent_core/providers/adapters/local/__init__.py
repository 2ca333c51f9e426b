"""A small language model that runs on this machine, without a network: the extra `local`."""

from agent_core.providers.adapters.local.facts import (
    LOCAL,
    LOCAL_FACTS,
    local_is_installed,
    local_provider,
    local_providers,
)
from agent_core.providers.adapters.local.model import LocalModel
from agent_core.providers.adapters.local.server import LocalServer

__all__ = [
    "LOCAL",
    "LOCAL_FACTS",
    "LocalModel",
    "LocalServer",
    "local_is_installed",
    "local_provider",
    "local_providers",
]
