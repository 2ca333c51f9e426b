"""The programs that are known to read only, and why git is none of them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace.permissions.call_permission import READ_ONLY_COMMANDS


def test_every_listed_program_is_a_reader_without_options_that_write() -> None:
    """Pinned: whoever adds one here must have read its manual."""
    assert " ".join(sorted(READ_ONLY_COMMANDS)) == (
        "basename cat cksum cmp cut df dirname du echo false head id ls md5sum nl pwd readlink realpath "
        "sha256sum stat tail tr true uname wc which whoami"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_why_git_is_not_read_only(tmp_path: Path) -> None:
    """Shows the reason, with git itself: a file that can be edited decides what a reading command starts."""

    def git(*words: str) -> None:
        subprocess.run(
            ["git", *words], cwd=tmp_path, check=False, capture_output=True, timeout=20,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path)},
        )  # fmt: skip

    git("init", "--quiet", ".")
    config = tmp_path / ".git" / "config"
    config.write_text(
        config.read_text("utf-8") + "[core]\n\tfsmonitor = touch started; false\n", "utf-8"
    )
    git("status")
    assert (tmp_path / "started").exists()
