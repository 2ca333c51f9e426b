"""A review on a pull request of Gitea or Forgejo: the API is a server of ours that takes nothing which theirs do not name."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.harness.clock import FakeClock
from tests.support.review.code_host import CodeHost, Fault, Reply, serving
from tests.support.review.gitea_api import PULL, TOKEN, GiteaApi
from tests.support.review.reviews import HEAD, a_finding, a_review, a_suggestion
from tiller_server.review.posting import GiteaPull, HostRefused, PostingFailed, post_review
from tiller_server.review.posting.code_host import CheckReport
from tiller_server.review.posting.comment_markers import SummaryMark, write_summary_mark
from tiller_server.review.posting.post import open_host

NEXT = "c" * 40
COMMENTS = "/repos/o/r/issues/7/comments"


@pytest.fixture
def api() -> GiteaApi:
    return GiteaApi(head=HEAD, lines={"src/cart.py": {5, 6, 7, 8}})


@pytest.fixture
async def host(api: GiteaApi) -> AsyncGenerator[CodeHost]:
    async with serving(api) as served:
        yield served
    assert api.problems == []


def target(host: CodeHost, *, token: str = TOKEN) -> GiteaPull:
    return GiteaPull(api_url=host.url, repository="o/r", number=7, token=token)


async def test_a_first_review_is_one_review_with_its_comments_and_a_summary(
    api: GiteaApi, host: CodeHost
) -> None:
    new = a_finding(line=5)
    same = a_finding(line=8, suggestion=a_suggestion(8, end_line=8))
    posted = await post_review(a_review(new, same), target(host), clock=FakeClock())
    assert (posted.new, posted.unplaced) == (2, 0)
    assert api.by_line() == [("src/cart.py", 5, False), ("src/cart.py", 8, False)]
    assert host.writes() == [f"POST {PULL}/reviews", f"POST {COMMENTS}"]
    assert "```suggestion" not in api.threads[1]["body"]


async def test_a_second_run_changes_nothing(api: GiteaApi, host: CodeHost) -> None:
    review = a_review(a_finding(line=5), a_finding(line=8))
    api.page_size = 2
    for _ in range(5):
        api.add_review(author=4)
    api.add_comment("hello", author=4)
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


async def test_a_mark_in_a_comment_of_another_author_is_not_ours(
    api: GiteaApi, host: CodeHost
) -> None:
    review = a_review(a_finding(line=5))
    await post_review(review, target(host), clock=FakeClock())
    copied = {"path": "src/cart.py", "new_position": 5, "body": api.threads[0]["body"]}
    api.reviews = []
    api.add_review(copied, author=4)
    api.comments = []
    api.add_comment(write_summary_mark(SummaryMark(head=HEAD)), author=4)
    posted = await post_review(review, target(host), clock=FakeClock())
    assert posted.new == 1
    assert len(api.comments) == 2


@pytest.mark.parametrize("may_resolve", [True, False], ids=["gitea", "forgejo"])
async def test_a_fixed_finding_is_marked_and_closed_where_the_server_can_and_comes_back(
    api: GiteaApi, host: CodeHost, may_resolve: bool
) -> None:
    api.may_resolve = may_resolve
    old = a_finding(line=5)
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.head = NEXT
    fixed = a_review(head=NEXT, fixed=(old.fingerprint,))
    posted = await post_review(fixed, target(host), clock=FakeClock())
    assert posted.fixed == 1
    assert api.by_line() == [("src/cart.py", 5, may_resolve)]
    assert "**Fixed** as of `cccccccccccc`" in api.threads[0]["body"]
    assert len(api.comments) == 1
    assert len(posted.lines) == (1 if may_resolve else 2)
    await post_review(a_review(old, head=NEXT), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 5, False)]
    assert "**Fixed**" not in api.threads[0]["body"]


async def test_a_finding_outside_the_diff_is_in_the_summary_alone(
    api: GiteaApi, host: CodeHost
) -> None:
    outside = a_finding(line=400, in_diff=False)
    posted = await post_review(a_review(outside), target(host), clock=FakeClock())
    assert (api.threads, posted.unplaced) == ([], 1)
    assert "`src/cart.py:400`" in api.comments[0]["body"]


@pytest.mark.parametrize("is_done", [False, True], ids=["not-done", "done-unanswered"])
@pytest.mark.parametrize("reply", [Reply(status=503), None], ids=["503", "cut-off"])
async def test_a_failure_in_the_middle_posts_nothing_twice(
    api: GiteaApi, host: CodeHost, reply: Reply | None, is_done: bool
) -> None:
    host.faults.append(Fault(method="POST", path="/reviews$", reply=reply, is_done=is_done))
    host.faults.append(Fault(method="POST", path="/comments$", reply=reply, is_done=is_done))
    review = a_review(a_finding(line=5), a_finding(line=8))
    await post_review(review, target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 5, False), ("src/cart.py", 8, False)]
    assert len(api.comments) == 1


async def test_what_a_broken_review_left_pending_is_not_posted_with_ours(
    api: GiteaApi, host: CodeHost
) -> None:
    half = {"path": "src/cart.py", "new_position": 5, "body": "half"}
    api.add_review(half, state="PENDING")
    await post_review(a_review(a_finding(line=5)), target(host), clock=FakeClock())
    assert len(api.threads) == 1
    assert [review["state"] for review in api.reviews] == ["COMMENT"]


async def test_the_younger_of_two_twins_loses_its_mark_and_a_second_summary_goes(
    api: GiteaApi, host: CodeHost
) -> None:
    review = a_review(a_finding(line=5))
    await post_review(review, target(host), clock=FakeClock())
    twin = api.threads[0]
    api.add_review({"path": twin["path"], "new_position": 5, "body": twin["body"]})
    api.add_comment(api.comments[0]["body"])
    await post_review(review, target(host), clock=FakeClock())
    assert [one["body"] == twin["body"] for one in api.threads] == [True, False]
    assert len(api.comments) == 1
    host.forget()
    await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


@pytest.mark.parametrize("path", ["/user$", "/pulls/7$", "/reviews$", "/comments$"])
async def test_an_answer_that_is_not_whole_is_not_taken_for_absence(
    host: CodeHost, path: str
) -> None:
    review = a_review(a_finding(line=5))
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    page = Reply(body="<html>a proxy</html>")
    host.faults.append(Fault(method="GET", path=path, reply=page, times=99))
    with pytest.raises(PostingFailed, match="did not tell all of pull request 7"):
        await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


async def test_a_token_without_rights_is_refused_with_the_scopes(host: CodeHost) -> None:
    with pytest.raises(HostRefused, match="the token is not valid"):
        await post_review(a_review(), target(host, token="wrong"), clock=FakeClock())
    refusal = Reply(status=403, body={"message": "token does not have the scope"})
    host.faults.append(Fault(method="POST", path="/reviews$", reply=refusal))
    with pytest.raises(HostRefused, match="write:repository"):
        await post_review(a_review(a_finding(line=5)), target(host), clock=FakeClock())


async def test_a_status_is_written_once_and_anew_when_it_has_news(
    api: GiteaApi, host: CodeHost
) -> None:
    report = CheckReport(
        head=HEAD, external_id="1", conclusion="success", title="Nothing found", text="All is well."
    )
    async with open_host(target(host), FakeClock()) as opened:
        first = await opened.check(report)
        again = await opened.check(report)
        assert first == again == str(api.statuses[0]["id"])
        news = CheckReport(
            head=HEAD, external_id="2", conclusion="neutral", title="The review failed", text="x"
        )
        assert await opened.check(news) != first
        await opened.check(news)
    assert [one["description"] for one in api.statuses] == [
        "Nothing found: All is well.",
        "The review failed: x",
    ]
    refusal = Reply(status=403, body={"message": "no scope"})
    host.faults.append(Fault(method="POST", path="/statuses/", reply=refusal))
    async with open_host(target(host), FakeClock()) as opened:
        assert await opened.check(report) is None
