"""GitHub's API as far as reviews need it, holding requests against its published shapes."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from graphql import ExecutionResult, GraphQLError, build_schema, graphql_sync

from tests.support.provider.http import HttpRequest
from tests.support.review.code_host import DATA, CodeHost, Reply, Shapes, page
from tests.support.review.pulls_api import PullsApi
from tiller_server.review.posting import GitHubPull

TOKEN = "ghs_loopback"
PULL = "/repos/o/r/pulls/7"


@dataclass(slots=True, kw_only=True)
class Comment:
    number: int
    body: str
    is_ours: bool = True
    path: str = ""
    line: int | None = None
    start_line: int | None = None


@dataclass(slots=True, kw_only=True)
class Thread:
    comment: Comment
    is_resolved: bool = False
    is_outdated: bool = False


@dataclass(slots=True, kw_only=True)
class GitHubApi:
    """A pull request."""

    head: str
    lines: dict[str, set[int]]
    """What lines of which files its diff shows on the new side."""
    threads: list[Thread] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reviews: list[Any] = field(default_factory=list)
    may_resolve: bool = True
    may_check: bool = True
    checks: list[Any] = field(default_factory=list)
    pulls: PullsApi = field(default_factory=PullsApi)
    page_size: int = 100
    problems: list[str] = field(default_factory=list)
    last: int = 5_000_000_000
    """Numbers of comments have outgrown 32 bits."""

    def answer(self, request: HttpRequest, body: Any) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Reply(status=401, body={"message": "Bad credentials", "status": "401"})
        if not request.headers.get("user-agent"):
            self.problems.append("no User-Agent: GitHub refuses such requests")
        if request.path == "/graphql":
            return self._graphql(body)
        if body is not None:
            self.problems += shapes().problems(request, body)
        if (reply := self.pulls.answer(request, body, head=self.head)) is not None:
            return reply
        if request.method in {"GET", "DELETE"}:
            return self._bodiless(request)
        return self._rest(f"{request.method} {request.path}", body)

    def by_line(self) -> list[tuple[str, int | None, bool]]:
        """Give where comments stand, and whether they are resolved."""
        return [(t.comment.path, t.comment.line, t.is_resolved) for t in self.threads]

    def _rest(self, what: str, body: Any) -> Reply:
        if what == f"POST {PULL}/reviews":
            return self._review(body)
        if what == f"POST {PULL}/comments":
            return self._comment(body)
        if what == "POST /repos/o/r/issues/7/comments":
            self.comments.append(Comment(number=self._next(), body=body["body"]))
            return Reply(status=201, body={"id": self.last})
        if re.fullmatch(r"\w+ /repos/o/r/check-runs(/\d+)?", what):
            return self._check(what, body)
        if found := re.fullmatch(r"PATCH /repos/o/r/(issues|pulls)/comments/(\d+)", what):
            places = self.comments if found[1] == "issues" else [t.comment for t in self.threads]
            for comment in places:
                if comment.number == int(found[2]) and comment.is_ours:
                    comment.body = body["body"]
                    return Reply(body={"id": comment.number})
        return Reply(status=404, body={"message": "Not Found"})

    def _bodiless(self, request: HttpRequest) -> Reply:
        if found := re.fullmatch(r"/repos/o/r/commits/(\w+)/check-runs", request.path):
            runs = [one for one in self.checks if one["head_sha"] == found[1]]
            return Reply(body={"total_count": len(runs), "check_runs": runs})
        if found := re.fullmatch(r"/repos/o/r/(issues|pulls)/comments/(\d+)", request.path):
            number = int(found[2])
            before = len(self.comments) + len(self.threads)
            self.comments = [c for c in self.comments if not (c.is_ours and c.number == number)]
            self.threads = [t for t in self.threads if t.comment.number != number]
            if len(self.comments) + len(self.threads) < before:
                return Reply(status=204)
        return Reply(status=404, body={"message": "Not Found"})

    def _check(self, what: str, body: Any) -> Reply:
        if not self.may_check:
            message = "You must authenticate via a GitHub App."
            return Reply(status=403, body={"message": message})
        if what.startswith("POST"):
            self.checks.append({"id": self._next(), **body})
            return Reply(status=201, body=self.checks[-1])
        run = next(one for one in self.checks if what.endswith(f"/{one['id']}"))
        run.update(body)
        return Reply(body=run)

    def _review(self, body: Any) -> Reply:
        stale = [c for c in body["comments"] if not self._takes(c)]
        if stale or body["commit_id"] != self.head or not body["body"]:
            why = ["Line could not be resolved"] if stale else ["commit_id or body is wrong"]
            return Reply(status=422, body={"message": "Unprocessable Entity", "errors": why})
        self.reviews.append(body)
        for comment in body["comments"]:
            self._add(comment)
        return Reply(body={"id": self._next()})

    def _comment(self, body: Any) -> Reply:
        is_known = (
            body["path"] in self.lines if body.get("subject_type") == "file" else self._takes(body)
        )
        if not is_known or body["commit_id"] != self.head:
            errors = [{"resource": "PullRequestReviewComment", "code": "invalid", "field": "line"}]
            return Reply(status=422, body={"message": "Validation Failed", "errors": errors})
        self._add(body)
        return Reply(status=201, body={"id": self.last})

    def _takes(self, comment: Any) -> bool:
        shown = self.lines.get(comment["path"], set())
        start, line = comment.get("start_line"), comment.get("line")
        if comment.get("side") != "RIGHT" or line not in shown:
            return False
        return start is None or (start < line and start in shown)

    def _add(self, comment: Any) -> None:
        self.threads.append(
            Thread(
                comment=Comment(
                    number=self._next(),
                    body=comment["body"],
                    path=comment["path"],
                    line=comment.get("line"),
                    start_line=comment.get("start_line"),
                )
            )
        )

    def _next(self) -> int:
        self.last += 1
        return self.last

    def _graphql(self, body: Any) -> Reply:
        schema = build_schema((DATA / "github.graphql").read_text(encoding="utf-8"))
        result = graphql_sync(
            schema, body["query"], root_value=_Root(self), variable_values=body["variables"]
        )
        answer = _formatted(result)
        self.problems += [
            error["message"] for error in answer.get("errors", []) if "type" not in error
        ]
        return Reply(body=answer)

    def thread_nodes(self) -> list[Any]:
        return [
            {
                "id": f"T{thread.comment.number}",
                "isResolved": thread.is_resolved,
                "isOutdated": thread.is_outdated,
                "comments": lambda _info, first, one=thread: {"nodes": [node(one.comment)][:first]},
            }
            for thread in self.threads
        ]

    def turn(self, thread_id: str, *, is_resolved: bool) -> Any:
        if not self.may_resolve:
            message = "Resource not accessible by integration"
            raise GraphQLError(message, extensions={"type": "FORBIDDEN"})
        for thread in self.threads:
            if f"T{thread.comment.number}" == thread_id:
                thread.is_resolved = is_resolved
                return {"thread": {"isResolved": is_resolved}}
        message = "Could not resolve to a node"
        raise GraphQLError(message, extensions={"type": "NOT_FOUND"})


@cache
def shapes() -> Shapes:
    """Read the published shapes once."""
    return Shapes("github.json")


def target(host: CodeHost, *, repository: str = "o/r", number: int = 7) -> GitHubPull:
    """Give the pull request that the server has."""
    return GitHubPull(
        api_url=host.url,
        graphql_url=f"{host.url}/graphql",
        repository=repository,
        number=number,
        token=TOKEN,
    )


class _Root:
    def __init__(self, api: GitHubApi) -> None:
        self._api = api
        self.resolveReviewThread = self._turning(is_resolved=True)
        self.unresolveReviewThread = self._turning(is_resolved=False)

    def _turning(self, *, is_resolved: bool) -> Callable[..., Any]:
        return lambda _info, **given: self._api.turn(
            given["input"]["threadId"], is_resolved=is_resolved
        )

    def repository(self, _info: Any, owner: str, name: str, **_: Any) -> Any:
        if (owner, name) != ("o", "r"):
            message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise GraphQLError(message, extensions={"type": "NOT_FOUND"})
        return {"pullRequest": self._pull}

    def _pull(self, _info: Any, number: int) -> Any:
        if number != 7:
            message = f"Could not resolve to a PullRequest with the number of {number}."
            raise GraphQLError(message, extensions={"type": "NOT_FOUND"})
        api = self._api
        return {
            "headRefOid": api.head,
            "reviewThreads": lambda _info, **asked: _connection(api.thread_nodes(), api, asked),
            "comments": lambda _info, **asked: _connection(
                [node(comment) for comment in api.comments], api, asked
            ),
        }


def node(comment: Comment) -> Any:
    return {
        "fullDatabaseId": str(comment.number),
        "body": comment.body,
        "viewerDidAuthor": comment.is_ours,
    }


def _connection(nodes: list[Any], api: GitHubApi, asked: Any) -> Any:
    shown, after = page(nodes, after=asked.get("after"), size=min(asked["first"], api.page_size))
    end = after or str(len(nodes))
    return {"nodes": shown, "pageInfo": {"hasNextPage": after is not None, "endCursor": end}}


def _formatted(result: ExecutionResult) -> Any:
    answer: dict[str, Any] = {"data": result.data}
    if result.errors:
        answer["errors"] = [
            {"message": error.message, **(error.extensions or {})} for error in result.errors
        ]
    return answer
