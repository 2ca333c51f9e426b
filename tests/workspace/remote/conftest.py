"""Other sides for the tests of this folder."""

from tests.support.remote.fixtures import busybox_box, folder, machine_box, server

__all__ = ["busybox_box", "folder", "machine_box", "server"]
