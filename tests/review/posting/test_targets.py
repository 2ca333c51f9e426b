"""Where a review is posted follows from the environment of the job; what is missing is named."""

import json
from pathlib import Path

import pytest

from tiller_server.review.posting import GitHubPull, GitLabMerge, TargetMissing, target_from

GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": "t"}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_ID": "5",
    "CI_MERGE_REQUEST_IID": "7",
    "GITLAB_TOKEN": "t",
}


async def test_a_pull_request_is_known_by_its_ref() -> None:
    found = await target_from({**GITHUB, "GITHUB_REF": "refs/pull/12/merge"})
    assert found == GitHubPull(repository="o/r", number=12, token="t")


async def test_a_pull_request_is_known_by_its_event(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 3}}), encoding="utf-8")
    known = {"GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_PATH": str(event)}
    found = await target_from({**GITHUB, **known})
    assert isinstance(found, GitHubPull)
    assert found.number == 3


async def test_a_server_of_ones_own_is_asked_at_its_own_address() -> None:
    own = {
        "GITHUB_API_URL": "https://git.example/api/v3",
        "GITHUB_GRAPHQL_URL": "https://git.example/api/graphql",
    }
    found = await target_from({**GITHUB, **own, "TILLER_PULL_REQUEST": "1"})
    assert isinstance(found, GitHubPull)
    assert (found.api_url, found.graphql_url) == tuple(own.values())


async def test_a_merge_request_is_known_by_the_variables_of_its_pipeline() -> None:
    found = await target_from({**GITLAB, "CI_API_V4_URL": "https://git.example/api/v4"})
    assert found == GitLabMerge(api_url="https://git.example/api/v4", project="5", iid=7, token="t")


async def test_a_token_of_its_own_goes_before_the_one_of_the_job() -> None:
    found = await target_from({**GITLAB, "TILLER_GITLAB_TOKEN": "mine"})
    assert found.token == "mine"


async def test_a_token_is_shown_nowhere() -> None:
    found = await target_from({**GITLAB, "TILLER_GITLAB_TOKEN": "glpat-secret"})
    assert "glpat-secret" not in f"{found} {found!r}"


MISSING = {
    "nothing": ({}, "nothing says where to post"),
    "repository": ({"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "../x"}, "must be owner/name"),
    "push": ({**GITHUB, "GITHUB_REF": "refs/heads/main"}, "belongs to no pull request"),
    "event-gone": ({**GITHUB, "GITHUB_EVENT_PATH": "/nowhere"}, "belongs to no pull request"),
    "github-token": (
        {"GITHUB_REPOSITORY": "o/r", "TILLER_PULL_REQUEST": "1"},
        "there is no token to post with: set TILLER_GITHUB_TOKEN or GITHUB_TOKEN",
    ),
    "branch": ({"GITLAB_CI": "true", "CI_PROJECT_ID": "5"}, "belongs to no merge request"),
    "project": ({"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7"}, "CI_PROJECT_ID is not set"),
    "gitlab-token": ({**GITLAB, "GITLAB_TOKEN": ""}, "role Developer, scope api"),
    "plain-http": (
        {**GITLAB, "CI_API_V4_URL": "http://git.example/api/v4"},
        "must begin with https://",
    ),
    "no-address": ({**GITLAB, "CI_API_V4_URL": "http://[::1/api"}, "must begin with https://"),
    "line-break": ({**GITLAB, "GITLAB_TOKEN": "a\nX-Evil: 1"}, "signs that no token has"),
}


@pytest.mark.parametrize("name", MISSING)
async def test_what_is_missing_is_named(name: str) -> None:
    variables, said = MISSING[name]
    with pytest.raises(TargetMissing, match=said) as missing:
        await target_from(variables)
    assert "X-Evil" not in str(missing.value)
