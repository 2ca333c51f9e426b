"""A review of a folder that nobody trusts starts no program that its repository names, or that lies in it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_core.kernel.errors import TillerError
from agent_core.workspace.git.client import GitFailed
from tests.support.review.reviewing import Reviewing, says
from tests.support.workspace.poisoned import POISONS, poisoned
from tests.support.workspace.repositories import WHO
from tiller_server.review.git.revisions import WORKING_TREE

pytestmark = [pytest.mark.timeout(60)]
CONTROLLED = [name for name, poison in POISONS.items() if poison.control is not None]
MISSING = {"a promisor's uploadpack", "core.sshCommand", "an external transport"}
"""With these objects are missing, so a review cannot be made."""


@pytest.mark.parametrize("name", CONTROLLED)
def test_plain_git_starts_the_program(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "PWNED"
    repository = poisoned(tmp_path / "project", name, mark)
    control = POISONS[name].control
    assert control is not None
    subprocess.run(
        ["git", *control],
        cwd=repository.root,
        env={"PATH": "/usr/bin:/bin", **WHO},
        capture_output=True,
        check=False,
    )
    assert mark.exists()


@pytest.mark.parametrize("head", [WORKING_TREE, "HEAD", "elsewhere"])
@pytest.mark.parametrize("name", POISONS)
async def test_the_review_starts_no_program_of_the_repository(
    reviewing: Reviewing, tmp_path: Path, name: str, head: str
) -> None:
    mark = tmp_path / "PWNED"
    poisoned(tmp_path / "project", name, mark)
    if name in MISSING:
        with pytest.raises(GitFailed, match="partial clone"):
            await reviewing.review(says("."), base="main", head=head)
    else:
        made = await reviewing.review(says("."), base="main", head=head)
        assert {"a.txt", "b.py"} <= {one.path for one in made.files}
    assert not mark.exists()


PLACES = (".venv/bin", "node_modules/.bin", "tools")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["a file", "a link to it", "a relative entry"])
async def test_no_git_of_the_workspace_is_started(
    reviewing: Reviewing, tmp_path: Path, place: str, kind: str
) -> None:
    mark = tmp_path / "PWNED"
    root = reviewing.repository.root
    reviewing.repository.commit("Begin", {"a.txt": "one\n"})
    reviewing.repository.write("a.txt", "two\n")
    planted = root / place / "git"
    planted.parent.mkdir(parents=True)
    planted.write_text(f'#!/bin/sh\ntouch {mark}\nexec /usr/bin/git "$@"\n', "utf-8")
    planted.chmod(0o755)
    first = str(planted.parent)
    if kind == "a link to it":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").symlink_to(planted)
        first = str(tmp_path / "bin")
    elif kind == "a relative entry":
        first = place
    env = {**reviewing.request().env, "PATH": f"{first}{os.pathsep}/usr/bin:/bin"}
    there = Reviewing(
        repository=reviewing.repository, provider=reviewing.provider, dirs=reviewing.dirs, env=env
    )
    made = await there.review(says("."), base="HEAD", head=WORKING_TREE)
    assert "a.txt" in {one.path for one in made.files}
    assert not mark.exists()


async def test_with_no_git_outside_of_the_workspace_the_review_says_so(
    reviewing: Reviewing,
) -> None:
    reviewing.repository.commit("Begin", {"a.txt": "one\n"})
    planted = reviewing.repository.root / "bin" / "git"
    planted.parent.mkdir()
    planted.symlink_to("/usr/bin/git")
    there = Reviewing(
        repository=reviewing.repository,
        provider=reviewing.provider,
        dirs=reviewing.dirs,
        env={"PATH": str(planted.parent)},
    )
    with pytest.raises(TillerError, match=r"git was not found on the PATH outside of .*project"):
        await there.review(says("."), base="HEAD", head=WORKING_TREE)
