"""A pull request of Gitea or Forgejo: comments on its lines in one review, a comment as summary, and a status of its head.

The API: https://docs.gitea.com/api. Edits of review comments go by the route of issue comments.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from typing import Final
from urllib.parse import urlencode

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.text import one_line
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.posting.ci_environment import GiteaPull
from tiller_server.review.posting.code_host import (
    CheckReport,
    CodeHost,
    CodeHostState,
    CommentDraft,
    Summary,
    Thread,
)
from tiller_server.review.posting.comment_markers import read_finding_mark, read_summary_mark
from tiller_server.review.posting.comment_text import review_text
from tiller_server.review.posting.errors import HostRefused
from tiller_server.review.posting.http_client import (
    ANY_REQUEST,
    CodeHostClient,
    CodeHostResponse,
    RequestRules,
    refuse,
    unreadable,
)
from tiller_server.review.posting.json_fields import each, inside, text

NAME: Final = "Gitea"
MOST_PAGES: Final = 100
PER_PAGE: Final = 50
CONTEXT: Final = "Tiller"
"""Of the status: the newest one of a context counts."""
STATUS_CHARS: Final = 140
TWIN: Final = "This comment was posted twice; the other one stands."
NO_RESOLUTION: Final = frozenset(
    {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
)
"""Answers of a server that closes no conversations by its API: Gitea before 1.26, and Forgejo."""
NO_STATUS: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
ADVICE: Final[Mapping[int, str]] = {
    401: "the token is not valid (any more)",
    403: "the token needs the scopes write:repository, write:issue and read:user",
    404: "check the repository and the number, and that the token may read that repository",
}


class GiteaHost(CodeHost):
    """A pull request."""

    def __init__(
        self, target: GiteaPull, *, clock: Clock, rules: RequestRules = ANY_REQUEST
    ) -> None:
        self.comment_chars = 65_000
        self._target = target
        self._repository_url = f"{target.api_url}/repos/{target.repository}"
        self._pull_url = f"{self._repository_url}/pulls/{target.number}"
        headers = {"Authorization": f"token {target.token}", "User-Agent": "tiller"}
        self._api = CodeHostClient(NAME, headers=headers, clock=clock, rules=rules)

    @override
    def offer(self, suggestion: Suggestion) -> str | None:
        return None

    @override
    async def read(self) -> CodeHostState:
        me = text(inside(await self._get(f"{self._target.api_url}/user")).get("id"))
        head = await self.head()
        if not me or not head:
            raise unreadable(NAME, str(self._target))
        threads: list[Thread] = []
        async for review in self._own_reviews(me):
            if review.get("state") != "PENDING":
                listed = await self._list(
                    f"{self._pull_url}/reviews/{text(review.get('id'))}/comments"
                )
                threads += _threads(listed, me)
        comments = await self._list(f"{self._repository_url}/issues/{self._target.number}/comments")
        summaries = [*_summaries(comments, me)]
        return CodeHostState(
            head=head,
            threads=tuple(threads),
            summary=summaries[0] if summaries else None,
            other_summaries=tuple(summaries[1:]),
        )

    @override
    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        on_lines = [draft for draft in drafts if draft.finding.in_diff and draft.is_sayable]
        if on_lines:
            await self._remove_pending()
            await self._review(on_lines, head=head)
        return tuple(draft.finding for draft in drafts if draft not in on_lines)

    @override
    async def edit(self, thread: Thread, body: str) -> None:
        await self._edit(thread.comment, body, what="edit a comment of ours")

    @override
    async def resolve(self, thread: Thread) -> bool:
        return await self._turn_thread(thread, "resolve")

    @override
    async def reopen(self, thread: Thread) -> bool:
        return await self._turn_thread(thread, "unresolve")

    @override
    async def write_summary(self, body: str) -> None:
        url = f"{self._repository_url}/issues/{self._target.number}/comments"
        await self._send("POST", url, {"body": body}, what=f"comment on {self._target}")

    @override
    async def edit_summary(self, summary: Summary, body: str) -> None:
        await self._edit(summary.comment, body, what="edit the summary")

    @override
    async def head(self) -> str:
        return text(inside(await self._get(self._pull_url), "head").get("sha"))

    @override
    async def delete(self, own: Thread | Summary) -> None:
        """Delete a summary; a comment on lines loses its mark, because the API deletes it only with its whole review."""
        if isinstance(own, Thread):
            await self.edit(own, TWIN)
            return
        url = f"{self._repository_url}/issues/comments/{own.comment}"
        answer = await self._api.write("DELETE", url)
        if not answer.is_done and answer.status != HTTPStatus.NOT_FOUND:
            raise self._refused(answer, what="delete a comment of ours")

    @override
    async def check(self, report: CheckReport) -> str | None:
        wanted = one_line(f"{report.title}: {report.text}")[:STATUS_CHARS]
        url = f"{self._repository_url}/commits/{report.head}/statuses?limit={PER_PAGE}"
        answer = await self._api.read("GET", url)
        if answer.status in NO_STATUS:
            return None
        if not answer.is_done:
            raise self._refused(answer, what="read the statuses")
        own = [one for one in each(answer.body) if one.get("context") == CONTEXT]
        newest = max(own, key=_number, default=None)
        if newest is not None and newest.get("description") == wanted:
            return text(newest.get("id"))
        body: JsonObject = {"context": CONTEXT, "state": "success", "description": wanted}
        url = f"{self._repository_url}/statuses/{report.head}"
        written = await self._api.write("POST", url, body=body)
        if written.status in NO_STATUS:
            return None
        if not written.is_done:
            raise self._refused(written, what="write a status")
        return text(inside(written.body).get("id"))

    @override
    async def aclose(self) -> None:
        await self._api.aclose()

    async def _review(self, drafts: Sequence[CommentDraft], *, head: str) -> None:
        """Post all at once; until the review is whole only its author sees it."""
        body: JsonObject = {
            "commit_id": head,
            "event": "COMMENT",
            "body": review_text(len(drafts)),
            "comments": [
                {
                    "path": draft.finding.path,
                    "body": draft.plain_body,
                    "new_position": draft.finding.end_line,
                }
                for draft in drafts
            ],
        }
        await self._send("POST", f"{self._pull_url}/reviews", body, what=f"review {self._target}")

    async def _remove_pending(self) -> None:
        """Delete what is left of a review that the server did not end: its comments would be posted with ours."""
        me = text(inside(await self._get(f"{self._target.api_url}/user")).get("id"))
        pending = [one async for one in self._own_reviews(me) if one.get("state") == "PENDING"]
        for review in pending:
            url = f"{self._pull_url}/reviews/{text(review.get('id'))}"
            answer = await self._api.write("DELETE", url)
            if not answer.is_done and answer.status != HTTPStatus.NOT_FOUND:
                raise self._refused(answer, what="delete an unfinished review of ours")

    async def _own_reviews(self, me: str) -> AsyncIterator[JsonObject]:
        for page in count(1):
            query = urlencode({"limit": PER_PAGE, "page": page})
            reviews = await self._list(f"{self._pull_url}/reviews?{query}")
            if not reviews:  # the server's own limit may be below ours
                return
            if page > MOST_PAGES:
                raise unreadable(NAME, str(self._target))
            for review in each(reviews):
                if text(inside(review, "user").get("id")) == me:
                    yield review

    async def _turn_thread(self, thread: Thread, verb: str) -> bool:
        url = f"{self._repository_url}/pulls/comments/{thread.comment}/{verb}"
        answer = await self._api.write("POST", url)
        if answer.is_done:
            return True
        if answer.status in NO_RESOLUTION:
            return False
        raise self._refused(answer, what="close a conversation")

    async def _edit(self, comment: str, body: str, *, what: str) -> None:
        url = f"{self._repository_url}/issues/comments/{comment}"
        await self._send("PATCH", url, {"body": body}, what=what)

    async def _get(self, url: str) -> JsonValue:
        answer = await self._api.read("GET", url)
        if not answer.is_done:
            raise self._refused(answer, what=f"read {self._target}")
        return answer.body

    async def _list(self, url: str) -> Sequence[JsonValue]:
        body = await self._get(url)
        if isinstance(body, str) or not isinstance(body, Sequence):
            raise unreadable(NAME, str(self._target))
        return body

    async def _send(self, method: str, url: str, body: JsonObject, *, what: str) -> None:
        answer = await self._api.write(method, url, body=body)
        if not answer.is_done:
            raise self._refused(answer, what=what)

    def _refused(self, answer: CodeHostResponse, *, what: str) -> HostRefused:
        return refuse(NAME, answer, what=what, advice=ADVICE)


def _threads(comments: Sequence[JsonValue], me: str) -> Iterator[Thread]:
    for comment in each(comments):
        body = text(comment.get("body"))
        mark = read_finding_mark(body)
        # A mark in a comment of another author is a forgery.
        if mark is not None and text(inside(comment, "user").get("id")) == me:
            yield Thread(
                thread=text(comment.get("pull_request_review_id")),
                comment=text(comment.get("id")),
                fingerprint=mark.fingerprint,
                is_fixed=mark.is_fixed,
                is_resolved=bool(inside(comment, "resolver")),
                is_outdated=False,  # the API does not say it; the review itself knows what is gone
                body=body,
            )


def _summaries(comments: Sequence[JsonValue], me: str) -> Iterator[Summary]:
    for comment in each(comments):
        body = text(comment.get("body"))
        mark = read_summary_mark(body)
        if mark is not None and text(inside(comment, "user").get("id")) == me:
            yield Summary(comment=text(comment.get("id")), mark=mark, body=body)


def _number(status: JsonObject) -> int:
    number = status.get("id")
    return number if isinstance(number, int) else 0
