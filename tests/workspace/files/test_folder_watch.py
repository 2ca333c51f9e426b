"""Folders are watched without an end to no question."""

import sys
from pathlib import Path

import pytest

from agent_core.workspace.files.folder_watch import MOST_READS, FolderWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
EVENT_BYTES = 32
"""One event with a short name."""


def test_events_that_come_faster_than_they_are_read_mean_all_folders(tmp_path: Path) -> None:
    watch = FolderWatch(read_bytes=2 * EVENT_BYTES)
    try:
        watch.add(str(tmp_path))
        assert watch.take() == set()
        for number in range(2 * MOST_READS):
            (tmp_path / f"{number}").touch()
        taken = [watch.take() for _ in range(8)]
        assert taken[0] is None
        assert taken[-2:] == [set(), set()]
        (tmp_path / "one").touch()
        assert watch.take() == {str(tmp_path)}
    finally:
        watch.close()
