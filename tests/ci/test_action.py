"""The steps of the action: a whole job from the change to the comments, and what it does when something is missing."""

import os
from pathlib import Path

import pytest

from tests.support.review.action_run import ActionRun
from tests.support.review.code_host import serving
from tests.support.review.github_api import TOKEN, GitHubApi
from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository

BAD = "    return price * quantty"
EVIL = "Look:\n::add-mask::everything\n::error::forged"


@pytest.fixture
def change(repository: Repository) -> tuple[str, str]:
    """Give base and head of a change with one defect in line 2 of `cart.py`."""
    base = repository.commit("base", {"README.md": "# Cart\n"})
    repository.git("switch", "--quiet", "--create", "change")
    head = repository.commit("cart", {"cart.py": f"def total(price, quantity):\n{BAD}\n"})
    return base, head


@pytest.fixture
def job(reviewing: Reviewing, change: tuple[str, str], tmp_path: Path) -> ActionRun:
    base, head = change
    temp = tmp_path / "runner"
    temp.mkdir()
    known = {
        "PATH": os.environ["PATH"],  # noqa: TID251 - handed on, not read
        **reviewing.dirs.variables(),
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_SERVER_URL": "http://127.0.0.1:9",
        "TILLER_CI_BASE": base,
        "TILLER_CI_HEAD": head,
        "TILLER_CI_NUMBER": "7",
        "TILLER_CI_FROM": "o/r",
        "TILLER_CI_TOKEN": TOKEN,
        "TILLER_CI_MODEL": "lab/m",
    }
    made = ActionRun(workspace=reviewing.repository.root, temp=temp, known=known)
    made.install()
    return made


@pytest.mark.timeout(120)
async def test_a_job_reviews_posts_once_and_fails_by_its_findings(
    job: ActionRun, reviewing: Reviewing, change: tuple[str, str]
) -> None:
    api = GitHubApi(head=change[1], lines={"cart.py": {1, 2}})
    wrong = a_report("cart.py", 2, BAD, title="Misspelt", message=EVIL)
    async with serving(api) as host:
        posting = {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": host.url,
            "GITHUB_GRAPHQL_URL": f"{host.url}/graphql",
        }
        assert (await job.step("prepare")).code == 0
        for _ in range(2):  # the second is the same job run again
            reviewing.provider.script([reports(wrong), says("It changes things.")])
            reviewed = await job.step("review")
            assert reviewed.code == 0, reviewed.text
            told = await job.step("tell", **posting)
            assert told.code == 0, told.text
    assert job.outputs["code"] == "3"
    assert job.outputs["sarif"].endswith("review.sarif")
    assert api.by_line() == [("cart.py", 2, False)]
    assert len(api.comments) == 1
    assert api.problems == []
    assert "Misspelt" in job.summary()


@pytest.mark.timeout(120)
async def test_no_word_of_a_model_is_a_command_to_the_runner(
    job: ActionRun, reviewing: Reviewing
) -> None:
    wrong = a_report("cart.py", 2, BAD, title="Misspelt", message=EVIL)
    reviewing.provider.script([reports(wrong), says("It changes things.")])
    await job.step("prepare")
    log = (await job.step("review")).text + (await job.step("tell", TILLER_CI_POST="false")).text
    obeyed: list[str] = []
    word = ""
    for line in log.splitlines():
        if word:
            word = "" if line == f"::{word}::" else word
        elif line.startswith("::stop-commands::"):
            word = line.removeprefix("::stop-commands::")
        elif line.startswith("::"):
            obeyed.append(line.partition(" ")[0])
    assert not word, "the runner listens again"
    assert obeyed == ["::error"], "the annotation of the finding, and nothing else"


@pytest.mark.timeout(120)
async def test_the_token_that_posts_is_not_there_while_the_model_is_asked(job: ActionRun) -> None:
    done = await job.step("review", TILLER_CI_MODEL="nobody/nothing")
    assert done.code == 0
    assert job.outputs["code"] == "2"
    assert "report" not in job.outputs
    assert TOKEN not in done.text


async def test_a_pull_request_from_a_fork_is_skipped_and_says_where_to_read_on(
    job: ActionRun,
) -> None:
    done = await job.step("prepare", TILLER_CI_FROM="stranger/r")
    assert done.code == 0
    assert "gets no secrets" in job.outputs["skipped"]
    assert "docs/ci/github.md" in done.text


async def test_a_labelled_fork_is_read_without_being_checked_out(
    job: ActionRun, repository: Repository, tmp_path: Path
) -> None:
    server = tmp_path / "server.git"
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(server))
    repository.git("remote", "add", "origin", str(server))
    fork = Repository(tmp_path / "fork")
    head = fork.commit("proposal", {"evil.sh": "exit 1\n"})
    fork.git("push", "--quiet", str(server), f"{head}:refs/pull/7/head")
    env = {"GITHUB_EVENT_NAME": "pull_request_target", "TILLER_CI_FROM": "stranger/r"}
    done = await job.step("prepare", TILLER_CI_HEAD=head, **env)
    assert done.code == 0, done.text
    assert repository.git("cat-file", "-t", head) == "commit"
    assert not (repository.root / "evil.sh").exists()
    assert "skipped" not in job.outputs


async def test_a_job_without_a_checkout_is_told_what_to_put_before_it(
    job: ActionRun, tmp_path: Path
) -> None:
    job.workspace = tmp_path / "empty"
    job.workspace.mkdir()
    done = await job.step("prepare")
    assert done.code == 2
    assert "actions/checkout with fetch-depth: 0" in done.text


@pytest.mark.timeout(120)
async def test_a_shallow_clone_is_told_what_to_fetch(
    job: ActionRun, repository: Repository, change: tuple[str, str], tmp_path: Path
) -> None:
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.root}", str(shallow))
    job.workspace = shallow
    await job.step("prepare", TILLER_CI_HEAD=change[1])
    done = await job.step("review")
    assert job.outputs["code"] == "2"
    assert "fetch-depth: 0" in done.text


@pytest.mark.timeout(120)
async def test_arguments_are_one_a_line_and_never_a_script(
    job: ActionRun, reviewing: Reviewing, tmp_path: Path
) -> None:
    reviewing.provider.script([says("Nothing.")])
    await job.step("prepare")
    evil = f"--instructions=$(touch {tmp_path}/run) `touch {tmp_path}/run`; touch {tmp_path}/run"
    done = await job.step("review", TILLER_CI_ARGUMENTS=f"{evil}\n\n--no-session\n")
    assert job.outputs["code"] == "0", done.text
    assert not (tmp_path / "run").exists()


async def test_a_step_that_is_none_is_named(job: ActionRun) -> None:
    done = await job.step("publish")
    assert done.code == 2
    assert "publish is no step" in done.text
