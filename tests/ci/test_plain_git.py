"""The hook of the page, taken from it as it stands, with the real Git."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.harness.shared import ROOT
from tests.support.review.action_run import put_tiller
from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.workspace.repositories import WHO, Repository

PAGE = ROOT / "docs" / "ci" / "plain-git.md"
BAD = "    return price * quantty"


def hook() -> str:
    (text,) = re.findall(
        r"^```sh\n(#!/bin/sh\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    # The model of these tests has no price.
    return text.replace("--budget-usd 1", "--max-minutes 5")


@pytest.mark.timeout(120)
def test_a_push_with_a_defect_is_kept_back_and_one_without_goes_out(
    reviewing: Reviewing, repository: Repository, tmp_path: Path
) -> None:
    put_tiller(tmp_path / "bin" / "tiller")
    remote = tmp_path / "remote.git"
    repository.commit("base", {"README.md": "# Cart\n"})
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(remote))
    repository.git("remote", "add", "origin", str(remote))
    repository.git("fetch", "--quiet", "origin")
    place = repository.root / ".git" / "hooks" / "pre-push"
    place.parent.mkdir(exist_ok=True)
    place.write_text(hook(), encoding="utf-8")
    place.chmod(0o755)
    repository.git("switch", "--quiet", "--create", "change")
    repository.commit("cart", {"cart.py": f"def total(price, quantity):\n{BAD}\n"})

    def push() -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"  # noqa: TID251 - handed on, not read
        env = {**WHO, **reviewing.dirs.variables(), "PATH": path}
        return subprocess.run(
            ["git", "push", "--quiet", "origin", "change"],
            cwd=repository.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    wrong = a_report("cart.py", 2, BAD, title="Misspelt")
    reviewing.provider.script([reports(wrong), says("It adds a cart.")])
    kept_back = push()
    assert kept_back.returncode != 0
    assert "Misspelt" in kept_back.stdout + kept_back.stderr
    reviewing.provider.script([says("Nothing is wrong with it.")])
    gone_out = push()
    assert gone_out.returncode == 0, gone_out.stderr
