"""What goes wrong between a review and GitHub: lost answers, killed jobs, limits, refusals."""

from typing import Any

import pytest

from agent_core.kernel.errors import TillerError
from tests.support.harness.clock import FakeClock
from tests.support.review.code_host import CodeHost, Fault, Reply
from tests.support.review.github_api import TOKEN, GitHubApi, target
from tests.support.review.reviews import HEAD, a_finding, a_review
from tiller_server.review.posting import GitHubPull, HostRefused, PostingFailed, post_review

PARTS = {
    "no-json": Reply(body="<html>a proxy</html>"),
    "nothing": Reply(body={"data": None}),
    "no-threads": Reply(
        body={
            "data": {
                "repository": {
                    "pullRequest": {"headRefOid": HEAD, "reviewThreads": None, "comments": None}
                }
            }
        }
    ),
    "with-errors": Reply(
        body={"data": {}, "errors": [{"type": "SOMETHING", "message": "timeout"}]}
    ),
}


@pytest.mark.parametrize("name", PARTS)
async def test_what_was_not_told_whole_is_not_taken_for_absent(
    api: GitHubApi, host: CodeHost, name: str
) -> None:
    review = a_review(a_finding())
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    host.faults.append(Fault(method="POST", path="/graphql$", reply=PARTS[name], times=99))
    with pytest.raises(PostingFailed):
        await post_review(review, target(host), clock=FakeClock())
    host.faults.clear()
    assert host.writes() == []


@pytest.mark.parametrize("is_done", [False, True], ids=["not-done", "done-unanswered"])
@pytest.mark.parametrize("reply", [Reply(status=502), None], ids=["502", "cut-off"])
async def test_a_failure_in_the_middle_is_tried_again_and_posts_nothing_twice(
    api: GitHubApi, host: CodeHost, reply: Reply | None, is_done: bool
) -> None:
    host.faults.append(Fault(method="POST", path="/reviews$", reply=reply, is_done=is_done))
    host.faults.append(Fault(method="POST", path="/issues/7", reply=reply, is_done=is_done))
    clock = FakeClock()
    review = a_review(a_finding(), a_finding("src/pay.py", 1))
    posted = await post_review(review, target(host), clock=clock)
    assert posted.new == 2
    assert len(api.threads) == 2
    assert len(api.comments) == 1
    assert clock.slept


async def test_a_job_that_was_killed_after_its_comments_is_made_good_by_the_next(
    api: GitHubApi, host: CodeHost
) -> None:
    review = a_review(a_finding(), a_finding("src/pay.py", 1))
    host.faults.append(Fault(method="POST", path="/issues/7", reply=None, times=99))
    with pytest.raises(PostingFailed):
        await post_review(review, target(host), clock=FakeClock())
    assert (len(api.threads), len(api.comments)) == (2, 0)
    host.faults.clear()
    await post_review(review, target(host), clock=FakeClock())
    assert (len(api.threads), len(api.comments)) == (2, 1)


LIMITS = {
    "secondary": Reply(
        status=403,
        body={"message": "You have exceeded a secondary rate limit."},
        headers={"Retry-After": "17"},
    ),
    "used-up": Reply(
        status=403,
        body={"message": "API rate limit exceeded"},
        headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1795000017"},
    ),
    "429": Reply(status=429, headers={"Retry-After": "17"}),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_a_rate_limit_is_waited_out(api: GitHubApi, host: CodeHost, name: str) -> None:
    host.faults.append(Fault(method="POST", path="/reviews$", reply=LIMITS[name]))
    clock = FakeClock()
    await post_review(a_review(a_finding()), target(host), clock=clock)
    assert clock.slept == [17.0]
    assert len(api.threads) == 1


async def test_a_limit_that_takes_too_long_ends_the_job_with_a_sentence(host: CodeHost) -> None:
    reply = Reply(status=403, headers={"Retry-After": "3600"})
    host.faults.append(Fault(method="POST", path="/reviews$", reply=reply))
    with pytest.raises(PostingFailed, match="takes no more requests for 3600 s"):
        await post_review(a_review(a_finding()), target(host), clock=FakeClock())


REFUSALS = {
    "401": (
        Fault(
            method="POST",
            path="/graphql",
            reply=Reply(status=401, body={"message": "Bad credentials"}),
        ),
        "the token is not valid",
    ),
    "403": (
        Fault(
            method="POST",
            path="/reviews$",
            reply=Reply(status=403, body={"message": "Resource not accessible by integration"}),
        ),
        "pull-requests: write",
    ),
    "404": (
        Fault(
            method="POST", path="/reviews$", reply=Reply(status=404, body={"message": "Not Found"})
        ),
        "check GITHUB_REPOSITORY",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_is_one_sentence_that_says_what_to_do(host: CodeHost, name: str) -> None:
    fault, advice = REFUSALS[name]
    host.faults.append(fault)
    with pytest.raises(HostRefused, match=advice) as refused:
        await post_review(a_review(a_finding()), target(host), clock=FakeClock())
    said = str(refused.value)
    assert "\n" not in said
    assert TOKEN not in said
    assert name in said


@pytest.mark.parametrize(
    "known", [{"number": 8}, {"repository": "o/other"}], ids=["number", "repository"]
)
async def test_a_pull_request_that_is_not_there_is_named(
    host: CodeHost, known: dict[str, Any]
) -> None:
    with pytest.raises(HostRefused, match="check GITHUB_REPOSITORY and the number"):
        await post_review(a_review(), target(host, **known), clock=FakeClock())


async def test_a_host_that_is_not_there_is_an_error_of_one_sentence() -> None:
    nowhere = "http://127.0.0.1:9"
    gone = GitHubPull(
        api_url=nowhere, graphql_url=f"{nowhere}/graphql", repository="o/r", number=7, token=TOKEN
    )
    with pytest.raises(TillerError, match="GitHub cannot be reached at "):
        await post_review(a_review(), gone, clock=FakeClock())
