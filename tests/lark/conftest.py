"""The ground of tests about Lark: folders of their own, a provider, a workspace."""

from tests.daemon.conftest import ground

__all__ = ["ground"]
