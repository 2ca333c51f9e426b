"""A pull request of GitHub: read by GraphQL, which knows conversations and whose they are; written by REST."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from typing import Final

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Finding, Suggestion
from tiller_server.review.posting.ci_environment import GitHubPull
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
from tiller_server.review.posting.errors import HostLimited, HostRefused, PlaceRefused
from tiller_server.review.posting.http_client import (
    ANY_REQUEST,
    CodeHostClient,
    CodeHostResponse,
    RequestRules,
    refuse,
    unreadable,
)
from tiller_server.review.posting.json_fields import each, inside, text

MOST_PAGES: Final = 50
HOUR_S: Final = 3600.0
CHECK: Final = "Tiller"
NO_CHECKS: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})
"""Answers to a token that may not write checks: only those of an app may."""
THREADS: Final = """
query ($owner: String!, $name: String!, $number: Int!, $threads: String, $comments: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      headRefOid
      reviewThreads(first: 100, after: $threads) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved isOutdated
          comments(first: 1) { nodes { fullDatabaseId body viewerDidAuthor } }
        }
      }
      comments(first: 100, after: $comments) {
        pageInfo { hasNextPage endCursor }
        nodes { fullDatabaseId body viewerDidAuthor }
      }
    }
  }
}
"""
RESOLVE: Final = """
mutation ($thread: ID!) { resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } } }
"""
REOPEN: Final = """
mutation ($thread: ID!) { unresolveReviewThread(input: {threadId: $thread}) { thread { isResolved } } }
"""
NO_KINDS: Final[frozenset[str]] = frozenset()
RIGHTS: Final = (
    "give the job `permissions: pull-requests: write`; a pull request from a fork gets a token that can only "
    "read, see the page on forks"
)
ADVICE: Final[Mapping[int, str]] = {
    301: "the repository has moved: check GITHUB_REPOSITORY",
    401: "the token is not valid (any more): set GITHUB_TOKEN to one that is",
    403: RIGHTS,
    404: "check GITHUB_REPOSITORY and the number, and that the token may read that repository",
    410: "the conversation is locked or gone",
}


class GitHubHost(CodeHost):
    """A pull request."""

    def __init__(
        self, target: GitHubPull, *, clock: Clock, rules: RequestRules = ANY_REQUEST
    ) -> None:
        self.comment_chars = 65_000
        self._target = target
        self._repository_url = f"{target.api_url}/repos/{target.repository}"
        self._pull_url = f"{self._repository_url}/pulls/{target.number}"
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {target.token}",
            "User-Agent": "tiller",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._api = CodeHostClient("GitHub", headers=headers, clock=clock, rules=rules)

    @override
    def offer(self, suggestion: Suggestion) -> str | None:
        return "suggestion"

    @override
    async def read(self) -> CodeHostState:
        owner, _, name = self._target.repository.partition("/")
        variables: dict[str, JsonValue] = {
            "owner": owner,
            "name": name,
            "number": self._target.number,
        }
        head = ""
        threads: list[Thread] = []
        summaries: list[Summary] = []
        for page in count(1):
            pull = await self._ask(THREADS, variables)
            if page > MOST_PAGES or not _is_whole(pull):
                raise unreadable("GitHub", str(self._target))
            head = head or text(pull.get("headRefOid"))
            threads += _threads(inside(pull, "reviewThreads").get("nodes"))
            summaries += _summaries(inside(pull, "comments").get("nodes"))
            more = [
                _turn(pull, variables, field="reviewThreads", cursor="threads"),
                _turn(pull, variables, field="comments", cursor="comments"),
            ]
            if not any(more):
                break
        return CodeHostState(
            head=head,
            threads=tuple(threads),
            summary=summaries[0] if summaries else None,
            other_summaries=tuple(summaries[1:]),
        )

    @override
    async def comment(self, drafts: Sequence[CommentDraft], *, head: str) -> tuple[Finding, ...]:
        on_lines = [draft for draft in drafts if draft.finding.in_diff and draft.is_sayable]
        beside = [draft for draft in drafts if draft not in on_lines]
        if on_lines:
            try:
                await self._review(on_lines, head=head)
            except PlaceRefused:
                beside = list(drafts)  # one line of it is not part of the change: each for itself
        unplaced = [draft for draft in beside if not await self._place(draft, head=head)]
        return tuple(draft.finding for draft in unplaced)

    @override
    async def edit(self, thread: Thread, body: str) -> None:
        url = f"{self._repository_url}/pulls/comments/{thread.comment}"
        await self._send("PATCH", url, {"body": body}, what="edit a comment of ours")

    @override
    async def resolve(self, thread: Thread) -> bool:
        return await self._turn_thread(RESOLVE, thread)

    @override
    async def reopen(self, thread: Thread) -> bool:
        return await self._turn_thread(REOPEN, thread)

    @override
    async def write_summary(self, body: str) -> None:
        url = f"{self._repository_url}/issues/{self._target.number}/comments"
        await self._send("POST", url, {"body": body}, what=f"comment on {self._target}")

    @override
    async def edit_summary(self, summary: Summary, body: str) -> None:
        url = f"{self._repository_url}/issues/comments/{summary.comment}"
        await self._send("PATCH", url, {"body": body}, what="edit the summary")

    @override
    async def head(self) -> str:
        answer = await self._get(self._pull_url, what=f"read {self._target}")
        return text(inside(answer.body, "head").get("sha"))

    @override
    async def delete(self, own: Thread | Summary) -> None:
        kind = "pulls" if isinstance(own, Thread) else "issues"
        url = f"{self._repository_url}/{kind}/comments/{own.comment}"
        answer = await self._api.write("DELETE", url)
        if not answer.is_done and answer.status != HTTPStatus.NOT_FOUND:
            raise self._refused(answer, what="delete a comment of ours")

    @override
    async def check(self, report: CheckReport) -> str | None:
        runs_url = f"{self._repository_url}/check-runs"
        url = f"{self._repository_url}/commits/{report.head}/check-runs?check_name={CHECK}"
        there = await self._api.read("GET", url)
        if there.status in NO_CHECKS:
            return None
        if not there.is_done:
            raise self._refused(there, what="read the checks")
        own = next(each(inside(there.body).get("check_runs")), None)
        body: dict[str, JsonValue] = {
            "name": CHECK,
            "external_id": report.external_id,
            "status": "completed",
            "conclusion": report.conclusion,
            "output": {"title": report.title, "summary": report.text},
        }
        if own is None:
            answer = await self._api.write("POST", runs_url, body={**body, "head_sha": report.head})
        else:
            answer = await self._api.write("PATCH", f"{runs_url}/{text(own.get('id'))}", body=body)
        if answer.status in NO_CHECKS:
            return None
        if not answer.is_done:
            raise self._refused(answer, what="write a check")
        return text(inside(answer.body).get("id"))

    @override
    async def aclose(self) -> None:
        await self._api.aclose()

    async def _review(self, drafts: Sequence[CommentDraft], *, head: str) -> None:
        """Post all at once: then a run that is killed has posted all of them or none."""
        body: JsonObject = {
            "commit_id": head,
            "event": "COMMENT",
            "body": review_text(len(drafts)),
            "comments": [
                {"path": draft.finding.path, "body": draft.body, **_lines(draft)}
                for draft in drafts
            ],
        }
        await self._send("POST", f"{self._pull_url}/reviews", body, what=f"review {self._target}")

    async def _place(self, draft: CommentDraft, *, head: str) -> bool:
        """Post one comment as near to its lines as GitHub lets us; tells whether it took one."""
        if not draft.is_sayable:
            return False
        finding = draft.finding
        for comment_text, place in _places(draft):
            body: JsonObject = {
                "path": finding.path,
                "commit_id": head,
                "body": comment_text,
                **place,
            }
            try:
                await self._send("POST", f"{self._pull_url}/comments", body, what="comment")
            except PlaceRefused:
                continue
            return True
        return False

    async def _turn_thread(self, mutation: str, thread: Thread) -> bool:
        body: JsonObject = {"query": mutation, "variables": {"thread": thread.thread}}
        answer = await self._api.write("POST", self._target.graphql_url, body=body)
        kinds = _error_kinds(answer)
        if answer.is_done and not kinds:
            return True
        if answer.status == HTTPStatus.FORBIDDEN or kinds & {"FORBIDDEN", "NOT_FOUND"}:
            return False
        raise self._refused(answer, what="close a conversation")

    async def _ask(self, query: str, variables: JsonObject) -> JsonObject:
        body: JsonObject = {"query": query, "variables": dict(variables)}
        answer = await self._api.read("POST", self._target.graphql_url, body=body)
        kinds = _error_kinds(answer)
        if answer.is_done and not kinds:
            return inside(answer.body, "data", "repository", "pullRequest")
        if "RATE_LIMITED" in kinds:
            message = "GitHub's limit for this token is used up; run the job again in an hour"
            raise HostLimited(message, wait_s=HOUR_S)
        raise self._refused(answer, what=f"read {self._target}", kinds=kinds)

    async def _get(self, url: str, *, what: str) -> CodeHostResponse:
        answer = await self._api.read("GET", url)
        if not answer.is_done:
            raise self._refused(answer, what=what)
        return answer

    async def _send(self, method: str, url: str, body: JsonObject, *, what: str) -> None:
        answer = await self._api.write(method, url, body=body)
        if answer.is_done:
            return
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            message = f"GitHub does not take it there ({answer.message})"
            raise PlaceRefused(message)
        raise self._refused(answer, what=what)

    def _refused(
        self, answer: CodeHostResponse, *, what: str, kinds: frozenset[str] = NO_KINDS
    ) -> HostRefused:
        if not answer.is_done:
            return refuse("GitHub", answer, what=what, advice=ADVICE)
        # GraphQL refuses with status 200 and says why in words.
        advice = ADVICE[404] if "NOT_FOUND" in kinds else RIGHTS
        return refuse("GitHub", answer, what=what, advice={answer.status: advice})


class _Comment(Value, frozen=True, kw_only=True):
    comment: str
    body: str


def _is_whole(pull: JsonObject) -> bool:
    """Return whether an answer is complete: a comment that seems to be absent would be posted again."""
    lists = (inside(pull, name).get("nodes") for name in ("reviewThreads", "comments"))
    return bool(text(pull.get("headRefOid"))) and all(
        isinstance(nodes, list | tuple) for nodes in lists
    )


def _threads(nodes: JsonValue) -> Iterator[Thread]:
    for node in each(nodes):
        for comment in _ours(inside(node, "comments").get("nodes")):
            mark = read_finding_mark(comment.body)
            if mark is not None:
                yield Thread(
                    thread=text(node.get("id")),
                    comment=comment.comment,
                    fingerprint=mark.fingerprint,
                    is_fixed=mark.is_fixed,
                    is_resolved=node.get("isResolved") is True,
                    is_outdated=node.get("isOutdated") is True,
                    body=comment.body,
                )


def _summaries(nodes: JsonValue) -> Iterator[Summary]:
    for comment in _ours(nodes):
        mark = read_summary_mark(comment.body)
        if mark is not None:
            yield Summary(comment=comment.comment, mark=mark, body=comment.body)


def _ours(nodes: JsonValue) -> Iterator[_Comment]:
    """Return the comments that this token wrote: a mark in somebody else's is a forgery."""
    for node in each(nodes):
        if node.get("viewerDidAuthor") is True:  # decision 0057
            yield _Comment(comment=text(node.get("fullDatabaseId")), body=text(node.get("body")))


def _turn(pull: JsonObject, variables: dict[str, JsonValue], *, field: str, cursor: str) -> bool:
    """Go on to the next page; tells whether there is one. At the end the last page stays, which is empty then."""
    page = inside(pull, field, "pageInfo")
    variables[cursor] = page.get("endCursor") or variables.get(cursor)
    return page.get("hasNextPage") is True


def _error_kinds(answer: CodeHostResponse) -> frozenset[str]:
    errors = inside(answer.body).get("errors")
    return frozenset(text(error.get("type")) or "UNKNOWN" for error in each(errors))


def _lines(draft: CommentDraft) -> JsonObject:
    if draft.line == draft.end_line:
        return {"line": draft.end_line, "side": "RIGHT"}
    return {
        "start_line": draft.line,
        "start_side": "RIGHT",
        "line": draft.end_line,
        "side": "RIGHT",
    }


def _places(draft: CommentDraft) -> Iterator[tuple[str, JsonObject]]:
    finding = draft.finding
    if finding.in_diff:
        yield draft.body, _lines(draft)
        if draft.line != finding.end_line or draft.end_line != finding.end_line:
            yield draft.plain_body, {"line": finding.end_line, "side": "RIGHT"}
    yield draft.plain_body, {"subject_type": "file"}
