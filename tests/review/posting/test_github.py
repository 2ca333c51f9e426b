"""A review on a pull request: the API is a server of ours that takes nothing which GitHub's published shapes do not."""

from tests.support.harness.clock import FakeClock
from tests.support.review.code_host import CodeHost
from tests.support.review.github_api import PULL, Comment, GitHubApi, Thread, target
from tests.support.review.reviews import HEAD, a_finding, a_review, a_suggestion
from tiller_server.review.posting import (
    plan_review,
    post_review,
)
from tiller_server.review.posting.comment_markers import read_summary_mark

NEXT = "c" * 40


def first_lines(api: GitHubApi) -> list[str]:
    return [thread.comment.body.partition("\n")[0] for thread in api.threads]


async def test_a_first_review_is_one_review_with_its_comments_and_one_summary(
    api: GitHubApi, host: CodeHost
) -> None:
    one = a_finding(severity="error", suggestion=a_suggestion(10, end_line=12))
    two = a_finding("src/pay.py", 2, category="security")
    posted = await post_review(a_review(one, two), target(host), clock=FakeClock())
    assert host.writes() == [f"POST {PULL}/reviews", "POST /repos/o/r/issues/7/comments"]
    assert (posted.new, posted.fixed, posted.unplaced) == (2, 0, 0)
    (review,) = api.reviews
    places = [{k: v for k, v in c.items() if k != "body"} for c in review["comments"]]
    assert places == [
        {
            "path": "src/cart.py",
            "start_line": 10,
            "start_side": "RIGHT",
            "line": 12,
            "side": "RIGHT",
        },
        {"path": "src/pay.py", "line": 2, "side": "RIGHT"},
    ]
    assert "```suggestion\n    for index in range(n):\n```" in review["comments"][0]["body"]
    assert first_lines(api) == [
        f"<!-- tiller:finding {one.fingerprint} -->",
        f"<!-- tiller:finding {two.fingerprint} -->",
    ]
    (summary,) = api.comments
    assert "## Tiller review: 1 error, 1 warning" in summary.body
    assert "lab/m" in summary.body
    assert "0.0421" in summary.body


async def test_a_second_run_changes_nothing(api: GitHubApi, host: CodeHost) -> None:
    review = a_review(a_finding(), a_finding("src/pay.py", 1))
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    again = a_review(*review.findings, summary="Said in other words this time.")
    posted = await post_review(again, target(host), clock=FakeClock())
    assert host.writes() == []
    assert posted.new == 0


async def test_a_second_push_comments_only_on_what_is_new_and_edits_the_summary_in_place(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    host.forget()
    api.head = NEXT
    moved = a_finding(line=20, fingerprint=old.fingerprint)
    posted = await post_review(
        a_review(moved, a_finding("src/pay.py", 3), head=NEXT), target(host), clock=FakeClock()
    )
    summary = api.comments[0]
    assert host.writes() == [
        f"POST {PULL}/reviews",
        f"PATCH /repos/o/r/issues/comments/{summary.number}",
    ]
    assert posted.new == 1
    assert len(api.threads) == 2
    assert len(api.comments) == 1
    mark = read_summary_mark(summary.body)
    assert mark is not None
    assert mark.head == NEXT


async def test_of_two_comments_with_one_mark_the_younger_is_deleted(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    kept = [api.threads[0].comment.number, api.comments[0].number]
    body = api.threads[0].comment.body
    api.threads.append(Thread(comment=Comment(number=api.last + 10, body=body)))
    api.comments.append(Comment(number=api.last + 11, body=api.comments[0].body))
    await post_review(a_review(old), target(host), clock=FakeClock())
    assert [api.threads[0].comment.number, api.comments[0].number] == kept
    assert (len(api.threads), len(api.comments)) == (1, 1)


async def test_a_fixed_finding_is_marked_and_its_conversation_closed(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.head = NEXT
    posted = await post_review(
        a_review(head=NEXT, fixed=(old.fingerprint,)), target(host), clock=FakeClock()
    )
    assert posted.fixed == 1
    assert api.by_line() == [("src/cart.py", 12, True)]
    assert "**Fixed** as of `cccccccccccc`" in api.threads[0].comment.body
    assert "1 finding of an earlier review is fixed" in api.comments[0].body


async def test_a_finding_that_comes_back_is_opened_again(api: GitHubApi, host: CodeHost) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    await post_review(a_review(fixed=(old.fingerprint,)), target(host), clock=FakeClock())
    await post_review(a_review(old), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 12, False)]
    assert first_lines(api) == [f"<!-- tiller:finding {old.fingerprint} -->"]


async def test_a_token_that_may_not_close_conversations_still_says_what_is_fixed(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.may_resolve = False
    posted = await post_review(a_review(fixed=(old.fingerprint,)), target(host), clock=FakeClock())
    assert "**Fixed**" in api.threads[0].comment.body
    assert "contents: write" in posted.lines[-1]


async def test_a_comment_whose_lines_changed_is_fixed_only_by_a_review_of_everything(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.threads[0].is_outdated = True
    await post_review(
        a_review(partial="the provider was not there"), target(host), clock=FakeClock()
    )
    assert api.by_line() == [("src/cart.py", 12, False)]
    assert "**Partial review:** the provider was not there" in api.comments[0].body
    await post_review(a_review(), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 12, True)]


async def test_a_stale_line_falls_back_to_the_file_and_then_to_the_summary(
    api: GitHubApi, host: CodeHost
) -> None:
    good, stale, gone = a_finding(), a_finding(line=400), a_finding("src/gone.py", 3)
    posted = await post_review(a_review(good, stale, gone), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 12, False), ("src/cart.py", None, False)]
    assert posted.unplaced == 1
    assert "### 🟠 The total leaves out the last item\n\n`src/gone.py:3`" in api.comments[0].body
    host.forget()
    await post_review(a_review(good, stale, gone), target(host), clock=FakeClock())
    assert len(api.threads) == 2


async def test_a_suggestion_beyond_the_diff_is_told_as_text_on_the_line_of_the_finding(
    api: GitHubApi, host: CodeHost
) -> None:
    finding = a_finding(line=48, suggestion=a_suggestion(48, end_line=60))
    await post_review(a_review(finding), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 48, False)]
    body = api.threads[0].comment.body
    assert "```suggestion" not in body
    assert "Suggested for lines 48 to 60" in body


async def test_a_line_that_the_diff_does_not_show_is_not_tried(
    api: GitHubApi, host: CodeHost
) -> None:
    await post_review(a_review(a_finding(line=12, in_diff=False)), target(host), clock=FakeClock())
    assert host.writes()[0] == f"POST {PULL}/comments"
    assert api.by_line() == [("src/cart.py", None, False)]


async def test_a_path_that_is_no_utf8_is_told_in_the_summary(
    api: GitHubApi, host: CodeHost
) -> None:
    posted = await post_review(
        a_review(a_finding("bad\udcff.py", 1)), target(host), clock=FakeClock()
    )
    assert posted.unplaced == 1
    assert "bad\\udcff.py:1" in api.comments[0].body


async def test_a_newer_push_gets_its_own_review(api: GitHubApi, host: CodeHost) -> None:
    api.head = NEXT
    posted = await post_review(a_review(a_finding()), target(host), clock=FakeClock())
    assert posted.is_outdated
    assert host.writes() == []
    assert "has moved on to cccccccccccc" in posted.lines[0]


async def test_a_mark_in_a_comment_of_somebody_else_keeps_nothing_from_being_posted(
    api: GitHubApi, host: CodeHost
) -> None:
    finding = a_finding()
    forged = f"<!-- tiller:finding {finding.fingerprint} -->\nlooks fine to me"
    api.threads.append(Thread(comment=Comment(number=1, body=forged, is_ours=False)))
    state = f'{{"head": "{HEAD}", "digest": "", "posted": ["{finding.fingerprint}"]}}'
    api.comments.append(Comment(number=2, body=f"<!-- tiller:summary {state} -->", is_ours=False))
    await post_review(a_review(finding), target(host), clock=FakeClock())
    assert len(api.threads) == 2
    assert len(api.comments) == 2


async def test_what_a_person_deleted_or_closed_stays_so(api: GitHubApi, host: CodeHost) -> None:
    review = a_review(a_finding(), a_finding("src/pay.py", 1))
    await post_review(review, target(host), clock=FakeClock())
    del api.threads[0]
    api.threads[0].is_resolved = True
    host.forget()
    await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


async def test_many_comments_are_read_page_by_page(api: GitHubApi, host: CodeHost) -> None:
    api.page_size = 2
    review = a_review(*(a_finding(line=line) for line in range(5, 16)))
    await post_review(review, target(host), clock=FakeClock())
    api.comments[0:0] = [Comment(number=n, body="hello", is_ours=False) for n in range(7)]
    host.forget()
    posted = await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []
    assert posted.new == 0


async def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    api: GitHubApi, host: CodeHost
) -> None:
    old = a_finding()
    await post_review(a_review(old), target(host), clock=FakeClock())
    host.forget()
    api.head = NEXT
    new = a_finding("src/pay.py", 2, title="Paid twice")
    review = a_review(new, head=NEXT, fixed=(old.fingerprint,))
    told = await plan_review(review, target(host), clock=FakeClock())
    assert told == (
        "would comment on src/pay.py:2: Paid twice\n"
        f"would close comment {api.threads[0].comment.number}, its finding {old.fingerprint} is fixed\n"
        "would bring the summary up to date: 1 warning at cccccccccccc\n"
    )
    assert host.writes() == []


async def test_the_longest_comment_is_cut_to_what_github_takes(
    api: GitHubApi, host: CodeHost
) -> None:
    await post_review(
        a_review(a_finding(message="word " * 40_000)), target(host), clock=FakeClock()
    )
    body = api.threads[0].comment.body
    assert len(body) <= 65_536
    assert body.endswith("*Cut here: the rest is in the report of the job.*")
