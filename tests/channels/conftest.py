"""The ground of tests about all front ends: folders of their own, a provider, a workspace."""

from tests.daemon.conftest import ground

__all__ = ["ground"]
