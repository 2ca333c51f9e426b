"""The API of Gitea and Forgejo as far as reviews need it, holding requests against its published shapes."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.support.provider.http import HttpRequest
from tests.support.review.code_host import Reply, Shapes, page
from tests.support.review.pulls_api import PullsApi

TOKEN = "gitea-loopback"
ME = 31
PULL = "/repos/o/r/pulls/7"


@dataclass(slots=True, kw_only=True)
class GiteaApi:
    """A pull request."""

    head: str
    lines: dict[str, set[int]]
    """Lines of each file that its diff shows on the new side."""
    reviews: list[Any] = field(default_factory=list)
    """Each has its comments."""
    comments: list[Any] = field(default_factory=list)
    statuses: list[Any] = field(default_factory=list)
    pulls: PullsApi = field(default_factory=PullsApi)
    may_resolve: bool = True
    """False: as Forgejo, which has no such route."""
    page_size: int = 50
    problems: list[str] = field(default_factory=list)
    last: int = 100

    def answer(self, request: HttpRequest, body: Any) -> Reply:
        if request.headers.get("authorization") not in {f"token {TOKEN}", f"Bearer {TOKEN}"}:
            return Reply(status=401, body={"message": "invalid username, password or token"})
        path = request.path.removeprefix("/api/v1")
        if body is not None:
            self.problems += shapes().problems(request, body)
        if (reply := self.pulls.answer(request, body, head=self.head)) is not None:
            return reply
        match request.method:
            case "GET":
                return self._get(path, request)
            case "DELETE":
                return self._delete(path)
            case _:
                return self._change(f"{request.method} {path}", body)

    @property
    def threads(self) -> list[Any]:
        """The comments on lines that others see."""
        return [one for review in self.reviews if _is_shown(review) for one in review["comments"]]

    def by_line(self) -> list[tuple[str, int | None, bool]]:
        """Return where comments stand, and whether they are resolved."""
        return [(one["path"], one["position"], bool(one["resolver"])) for one in self.threads]

    def add_review(self, *comments: Any, state: str = "COMMENT", author: int = ME) -> Any:
        review: dict[str, Any] = {"id": self._next(), "user": {"id": author}, "state": state}
        review["comments"] = [
            {
                "id": self._next(),
                "user": {"id": author},
                "body": one["body"],
                "path": one["path"],
                "position": one["new_position"],
                "resolver": None,
                "pull_request_review_id": review["id"],
            }
            for one in comments
        ]
        self.reviews.append(review)
        return review

    def add_comment(self, body: str, *, author: int = ME) -> Any:
        self.comments.append({"id": self._next(), "user": {"id": author}, "body": body})
        return self.comments[-1]

    def _get(self, path: str, request: HttpRequest) -> Reply:
        if path == "/user":
            return Reply(body={"id": ME, "login": "tiller-bot"})
        if path == f"{PULL}/reviews":
            size = min(int(request.query["limit"]), self.page_size)
            start = (int(request.query["page"]) - 1) * size
            shown, _ = page(self.reviews, after=str(start), size=size)
            return Reply(body=[{**one, "comments": None} for one in shown])
        if match := re.fullmatch(rf"{PULL}/reviews/(\d+)/comments", path):
            return Reply(body=self._review(match[1])["comments"])
        if path == "/repos/o/r/issues/7/comments":
            return Reply(body=self.comments)
        if match := re.fullmatch(r"/repos/o/r/commits/(\w+)/statuses", path):
            there = [one for one in self.statuses if one["sha"] == match[1]]
            return Reply(body=there[::-1])
        return Reply(status=404, body={"message": "The target couldn't be found."})

    def _delete(self, path: str) -> Reply:
        if match := re.fullmatch(rf"{PULL}/reviews/(\d+)", path):
            self.reviews.remove(self._review(match[1]))
            return Reply(status=204)
        for comment in self.comments:
            if path == f"/repos/o/r/issues/comments/{comment['id']}":
                self.comments.remove(comment)
                break
        return Reply(status=204)

    def _change(self, what: str, body: Any) -> Reply:
        if what == f"POST {PULL}/reviews":
            return self._submit(body)
        if what == "POST /repos/o/r/issues/7/comments":
            return Reply(status=201, body=self.add_comment(body["body"]))
        if match := re.fullmatch(r"POST /repos/o/r/statuses/(\w+)", what):
            made = {**body, "id": self._next(), "sha": match[1], "status": body["state"]}
            self.statuses.append(made)
            return Reply(status=201, body=made)
        if match := re.fullmatch(r"PATCH /repos/o/r/issues/comments/(\d+)", what):
            for one in (*self.comments, *self.threads):
                if one["id"] == int(match[1]) and one["user"]["id"] == ME:
                    one["body"] = body["body"]
                    return Reply(body=one)
        if match := re.fullmatch(r"POST /repos/o/r/pulls/comments/(\d+)/(un)?resolve", what):
            return self._resolve(int(match[1]), is_resolved=match[2] is None)
        return Reply(status=404, body={"message": "The target couldn't be found."})

    def _submit(self, body: Any) -> Reply:
        for one in body["comments"]:
            if one["new_position"] not in self.lines.get(one["path"], set()):
                return Reply(status=500, body={"message": "fatal: no such path"})
        # A review that is pending is submitted with the new comments.
        pending = [one for one in self.reviews if one["state"] == "PENDING"]
        made = self.add_review(*body["comments"])
        for one in pending:
            made["comments"] += one["comments"]
            self.reviews.remove(one)
        return Reply(body={"id": made["id"]})

    def _resolve(self, number: int, *, is_resolved: bool) -> Reply:
        if not self.may_resolve:
            return Reply(status=405)
        for one in self.threads:
            if one["id"] == number:
                one["resolver"] = {"id": ME} if is_resolved else None
        return Reply(status=204)

    def _review(self, number: str) -> Any:
        return next(one for one in self.reviews if one["id"] == int(number))

    def _next(self) -> int:
        self.last += 1
        return self.last


@cache
def shapes() -> Shapes:
    """Read the published shapes once."""
    return Shapes("gitea.json")


def _is_shown(review: Any) -> bool:
    return review["state"] != "PENDING"
