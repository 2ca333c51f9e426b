"""A review on a merge request: the API is a server of ours that takes nothing which GitLab's pages do not name."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.harness.clock import FakeClock
from tests.support.review.code_host import CodeHost, Fault, Reply, serving
from tests.support.review.gitlab_api import MERGE, TOKEN, File, GitLabApi
from tests.support.review.reviews import HEAD, a_finding, a_review, a_suggestion
from tiller_server.review.posting import GitLabMerge, HostRefused, PostingFailed, post_review
from tiller_server.review.posting.gitlab import old_lines

NEXT = "c" * 40
DIFF = """@@ -4,5 +4,6 @@ def total(items):
 four
-five
+FIVE
+and a half
 six
 seven
 eight
@@ -40 +41,2 @@
 forty
+more
\\ No newline at end of file
"""
SHOWN: dict[int, int | None] = {4: 4, 5: None, 6: None, 7: 6, 8: 7, 9: 8, 41: 40, 42: None}


@pytest.fixture
def api() -> GitLabApi:
    cart = File(new_path="src/cart.py", old_path="src/basket.py", diff=DIFF, shown=SHOWN)
    return GitLabApi(head=HEAD, files=[cart])


@pytest.fixture
async def host(api: GitLabApi) -> AsyncGenerator[CodeHost]:
    async with serving(api) as served:
        yield served
    assert api.problems == []


def target(host: CodeHost, *, project: str = "5", iid: int = 7, token: str = TOKEN) -> GitLabMerge:
    return GitLabMerge(api_url=f"{host.url}/api/v4", project=project, iid=iid, token=token)


def test_the_lines_of_a_diff_are_known_by_both_numbers() -> None:
    assert old_lines(DIFF) == SHOWN


async def test_a_first_review_opens_discussions_on_new_and_unchanged_lines_of_a_renamed_file(
    api: GitLabApi, host: CodeHost
) -> None:
    new, same = a_finding(line=5), a_finding(line=8)
    posted = await post_review(a_review(new, same), target(host), clock=FakeClock())
    assert (posted.new, posted.unplaced) == (2, 0)
    assert api.by_line() == [("src/cart.py", 5, False), ("src/cart.py", 8, False)]
    assert host.writes() == [f"POST {MERGE}/discussions"] * 2 + [f"POST {MERGE}/notes"]


async def test_a_suggestion_counts_its_lines_upwards_from_the_last(
    api: GitLabApi, host: CodeHost
) -> None:
    finding = a_finding(line=5, suggestion=a_suggestion(5, end_line=7))
    await post_review(a_review(finding), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 7, False)]
    assert "```suggestion:-2+0\n    for index in range(n):\n```" in api.notes()[0]["body"]


async def test_a_second_run_changes_nothing(api: GitLabApi, host: CodeHost) -> None:
    review = a_review(a_finding(line=5), a_finding(line=8))
    api.page_size = 2
    api.add("hello", author=4)
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


async def test_a_fixed_finding_is_closed_and_comes_back_when_it_does(
    api: GitLabApi, host: CodeHost
) -> None:
    old = a_finding(line=5)
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.head = NEXT
    fixed = a_review(head=NEXT, fixed=(old.fingerprint,))
    posted = await post_review(fixed, target(host), clock=FakeClock())
    assert posted.fixed == 1
    assert api.by_line() == [("src/cart.py", 5, True)]
    assert "**Fixed** as of `cccccccccccc`" in api.notes()[0]["body"]
    assert len(api.discussions) == 2
    await post_review(a_review(old, head=NEXT), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 5, False)]


async def test_a_line_outside_the_diff_falls_back_to_the_file_and_then_to_the_summary(
    api: GitLabApi, host: CodeHost
) -> None:
    outside, gone = a_finding(line=400), a_finding("src/gone.py", 2)
    posted = await post_review(a_review(outside, gone), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", None, False)]
    assert posted.unplaced == 1
    assert "`src/gone.py:2`" in api.notes()[-1]["body"]


async def test_a_refused_position_falls_back_too(api: GitLabApi, host: CodeHost) -> None:
    reply = Reply(status=400, body={"message": "400 Bad request - Note {:line_code=>[...]}"})
    host.faults.append(Fault(method="POST", path="/discussions$", reply=reply))
    await post_review(a_review(a_finding(line=5)), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", None, False)]


@pytest.mark.parametrize("is_done", [False, True], ids=["not-done", "done-unanswered"])
@pytest.mark.parametrize("reply", [Reply(status=503), None], ids=["503", "cut-off"])
async def test_a_failure_in_the_middle_posts_nothing_twice(
    api: GitLabApi, host: CodeHost, reply: Reply | None, is_done: bool
) -> None:
    host.faults.append(Fault(method="POST", path="/discussions$", reply=reply, is_done=is_done))
    host.faults.append(Fault(method="POST", path="/notes$", reply=reply, is_done=is_done))
    review = a_review(a_finding(line=5), a_finding(line=8))
    await post_review(review, target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 5, False), ("src/cart.py", 8, False)]
    assert len(api.discussions) == 3


@pytest.mark.parametrize("path", ["/user$", "/merge_requests/7$", "/discussions$"])
async def test_what_was_not_told_whole_is_not_taken_for_absent(host: CodeHost, path: str) -> None:
    review = a_review(a_finding(line=5))
    await post_review(review, target(host), clock=FakeClock())
    host.forget()
    page = Reply(body="<html>a proxy</html>")
    host.faults.append(Fault(method="GET", path=path, reply=page, times=99))
    with pytest.raises(PostingFailed, match="did not tell all of merge request 7"):
        await post_review(review, target(host), clock=FakeClock())
    assert host.writes() == []


async def test_a_rate_limit_is_waited_out(api: GitLabApi, host: CodeHost) -> None:
    headers = {"RateLimit-Remaining": "0", "RateLimit-Reset": "1795000030"}
    host.faults.append(
        Fault(method="GET", path="/diffs$", reply=Reply(status=429, headers=headers))
    )
    clock = FakeClock()
    await post_review(a_review(a_finding(line=5)), target(host), clock=clock)
    assert clock.slept == [30.0]
    assert len(api.discussions) == 2


async def test_quick_actions_that_a_model_wrote_are_never_run(
    api: GitLabApi, host: CodeHost
) -> None:
    text = "Fine.\n\n/approve\n  /merge\n- /close\n```\n/label ~bug\n```\n/assign @root"
    await post_review(
        a_review(a_finding(line=5, message=text), summary="/merge"), target(host), clock=FakeClock()
    )
    lines = [line for note in api.notes() for line in note["body"].split("\n")]
    assert [line for line in lines if line.strip().startswith("/")] == []
    assert {"\\/merge", "\\/label ~bug"} <= set(lines)


@pytest.mark.parametrize("replacement", ["/merge\n", "```\n/approve\n", "@bot merge\n"])
async def test_a_suggestion_that_holds_a_command_is_shown_and_not_offered(
    api: GitLabApi, host: CodeHost, replacement: str
) -> None:
    suggestion = a_suggestion(5, replacement=replacement)
    await post_review(
        a_review(a_finding(line=5, suggestion=suggestion)), target(host), clock=FakeClock()
    )
    body = api.notes()[0]["body"]
    assert "suggestion" not in body
    assert "Suggested for line 5" in body
    assert not {"/merge", "/approve", "@bot merge"} & set(body.split("\n"))


@pytest.mark.parametrize(
    ("known", "advice"),
    [
        ({"token": "glpat-old"}, "the token is not valid"),
        ({"iid": 8}, "check CI_PROJECT_ID"),
        ({"project": "group/sub"}, "check CI_PROJECT_ID"),
    ],
    ids=["token", "number", "project"],
)
async def test_a_refusal_says_what_to_do(
    host: CodeHost, known: dict[str, Any], advice: str
) -> None:
    with pytest.raises(HostRefused, match=advice):
        await post_review(a_review(), target(host, **known), clock=FakeClock())


async def test_a_token_without_rights_is_told_which_it_needs(host: CodeHost) -> None:
    reply = Reply(status=403, body={"message": "403 Forbidden"})
    host.faults.append(Fault(method="POST", path="/notes$", reply=reply))
    with pytest.raises(HostRefused, match="role Developer and the scope api"):
        await post_review(a_review(), target(host), clock=FakeClock())


async def test_a_token_that_may_not_close_discussions_still_says_what_is_fixed(
    api: GitLabApi, host: CodeHost
) -> None:
    old = a_finding(line=5)
    await post_review(a_review(old), target(host), clock=FakeClock())
    api.may_resolve = False
    await post_review(a_review(fixed=(old.fingerprint,)), target(host), clock=FakeClock())
    assert "**Fixed**" in api.notes()[0]["body"]


async def test_a_mark_in_a_note_of_somebody_else_is_not_believed(
    api: GitLabApi, host: CodeHost
) -> None:
    finding = a_finding(line=5)
    api.add(f"<!-- tiller:finding {finding.fingerprint} -->\nfine", author=4)
    await post_review(a_review(finding), target(host), clock=FakeClock())
    assert api.by_line() == [("src/cart.py", 5, False)]
