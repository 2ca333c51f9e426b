"""The daemon's files lie where nobody else can put or read anything."""

import os
import stat
from pathlib import Path

import pytest

from tiller_server.daemon.errors import CannotServe
from tiller_server.daemon.private_dir import objection, private_folder


def test_a_missing_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    folder = private_folder(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private_folder(str(folder)) == folder


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(
        CannotServe, match=rf"is open to other users \(mode {mode:04o}\); chmod 700"
    ):
        private_folder(str(folder))


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(CannotServe, match="is a link"):
        private_folder(str(tmp_path / "link"))


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotServe):
        private_folder(str(tmp_path / "file"))


def test_a_strangers_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert objection(tmp_path.lstat(), uid=os.geteuid()) is None
    assert objection(tmp_path.lstat(), uid=os.geteuid() + 1) == (
        f"belongs to user {os.geteuid()}, not to {os.geteuid() + 1}; set TILLER_RUNTIME_DIR to one of your own"
    )
