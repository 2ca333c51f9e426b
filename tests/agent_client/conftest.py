"""The ground of tests about clients of the server: folders of their own, a provider, a workspace."""

from tests.daemon.conftest import ground

__all__ = ["ground"]
