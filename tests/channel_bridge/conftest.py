"""The ground of tests about the bridge of chat platforms: folders of their own, a provider, a workspace."""

from tests.daemon.conftest import ground

__all__ = ["ground"]
