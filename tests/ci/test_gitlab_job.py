"""The job of the GitLab template, run as the runner of GitLab runs it: by a plain shell."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from tests.support.review.action_run import Ended, put_tiller, script_of_gitlab
from tests.support.review.code_host import CodeHost, serving
from tests.support.review.gitlab_api import TOKEN, File, GitLabApi
from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository

BAD = "    return price * quantty"


@pytest.fixture
def api(repository: Repository) -> GitLabApi:
    """Give a merge request with one defect in line 2 of `cart.py`."""
    base = repository.commit("base", {"README.md": "# Cart\n"})
    repository.git("switch", "--quiet", "--create", "change")
    head = repository.commit("cart", {"cart.py": f"def total(price, quantity):\n{BAD}\n"})
    diff = f"@@ -0,0 +1,2 @@\n+def total(price, quantity):\n+{BAD}\n"
    file = File(new_path="cart.py", old_path="cart.py", diff=diff, shown={1: None, 2: None})
    return GitLabApi(head=head, base=base, files=[file])


@pytest.fixture
async def host(api: GitLabApi) -> AsyncGenerator[CodeHost]:
    async with serving(api) as served:
        yield served


async def run_job(
    reviewing: Reviewing, host: CodeHost, api: GitLabApi, tmp_path: Path, **env: str
) -> Ended:
    put_tiller(tmp_path / "venv" / "bin" / "tiller")
    script = script_of_gitlab(tmp_path / "venv")
    known = {
        "PATH": os.environ["PATH"],  # noqa: TID251 - handed on, not read
        **reviewing.dirs.variables(),
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_API_V4_URL": f"{host.url}/api/v4",
        "CI_PROJECT_ID": "5",
        "CI_PROJECT_DIR": str(reviewing.repository.root),
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": api.base,
        "CI_COMMIT_SHA": api.head,
        "TILLER_FAIL_ON": "error",
        "TILLER_MAX_FINDINGS": "20",
        "TILLER_MAX_MINUTES": "5",
        "TILLER_MODEL": "lab/m",
        "TILLER_ON_PARTIAL": "fail",
        "TILLER_POST": "auto",
    }
    done = await anyio.run_process(
        ["sh", "-c", script],
        cwd=reviewing.repository.root,
        env={**known, **env},
        stderr=-2,
        check=False,
    )
    return Ended(code=done.returncode, text=done.stdout.decode())


@pytest.mark.timeout(120)
async def test_a_job_posts_once_and_fails_by_its_findings(
    reviewing: Reviewing, host: CodeHost, api: GitLabApi, tmp_path: Path
) -> None:
    wrong = a_report("cart.py", 2, BAD, title="Misspelt")
    for _ in range(2):
        reviewing.provider.script([reports(wrong), says("It changes things.")])
        done = await run_job(reviewing, host, api, tmp_path, TILLER_GITLAB_TOKEN=TOKEN)
        assert done.code == 3, done.text
    assert api.by_line() == [("cart.py", 2, False)]
    assert len(api.discussions) == 2
    assert api.problems == []
    assert (reviewing.repository.root / ".tiller-ci" / "code-quality.json").is_file()


@pytest.mark.timeout(120)
async def test_a_job_without_a_token_leaves_the_report_and_posts_nothing(
    reviewing: Reviewing, host: CodeHost, api: GitLabApi, tmp_path: Path
) -> None:
    reviewing.provider.script([reports(a_report("cart.py", 2, BAD)), says("It changes things.")])
    done = await run_job(reviewing, host, api, tmp_path)
    assert done.code == 3, done.text
    assert host.requests == []
    assert (reviewing.repository.root / ".tiller-ci" / "review.md").is_file()
