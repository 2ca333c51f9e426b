"""A scripted model provider on the loopback device, in a process of its own."""

from tests.support.provider.loopback import LoopbackProvider, write_config

__all__ = ["LoopbackProvider", "write_config"]
