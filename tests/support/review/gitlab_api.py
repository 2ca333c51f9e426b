"""GitLab's API as far as reviews need it, holding requests against its published shapes."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.provider.http import HttpRequest
from tests.support.review.code_host import Reply, Shapes, page
from tests.support.review.pulls_api import PullsApi

TOKEN = "glpat-loopback"
ME = 31
MERGE = "/api/v4/projects/5/merge_requests/7"


@dataclass(slots=True, kw_only=True)
class File:
    """A file of the change as GitLab tells it."""

    new_path: str
    old_path: str
    diff: str
    shown: dict[int, int | None]
    """New line → old line, written down by hand: what the position must say."""


@dataclass(slots=True, kw_only=True)
class GitLabApi:
    """A merge request."""

    head: str
    files: list[File]
    base: str = "b" * 40
    discussions: list[Any] = field(default_factory=list)
    pulls: PullsApi = field(default_factory=lambda: PullsApi(is_gitlab=True))
    may_resolve: bool = True
    page_size: int = 100
    problems: list[str] = field(default_factory=list)
    shapes: Shapes = field(default_factory=lambda: Shapes("gitlab.json"))
    last: int = 100

    def answer(self, request: HttpRequest, body: Any) -> Reply:
        if request.headers.get("private-token") != TOKEN:
            return Reply(status=401, body={"message": "401 Unauthorized"})
        if body is not None:
            self.problems += self.shapes.problems(request, body)
        if (reply := self.pulls.answer(request, body, head=self.head)) is not None:
            return reply
        # A project has a number and a path.
        request = replace(request, path=request.path.replace("/projects/o%2Fr/", "/projects/5/"))
        if request.method == "GET":
            return self._get(request)
        if request.method == "DELETE":
            return self._delete(request)
        if request.method == "PUT" and "resolved" in request.query:
            return self._resolve(request)
        return self._change(f"{request.method} {request.path}", body)

    def notes(self) -> list[Any]:
        return [discussion["notes"][0] for discussion in self.discussions]

    def by_line(self) -> list[tuple[str, int | None, bool]]:
        """Give where discussions stand, and whether they are resolved."""
        return [
            (note["position"]["new_path"], note["position"].get("new_line"), note["resolved"])
            for note in self.notes()
            if note["position"]
        ]

    def add(self, body: str, *, author: int = ME, position: Any = None) -> Any:
        self.last += 1
        note = {
            "id": self.last,
            "type": "DiffNote" if position else None,
            "body": body,
            "author": {"id": author, "username": f"user{author}"},
            "system": False,
            "resolvable": position is not None,
            "resolved": False,
            "position": position,
        }
        discussion = {
            "id": f"{self.last:040x}",
            "individual_note": position is None,
            "notes": [note],
        }
        self.discussions.append(discussion)
        return discussion

    def _get(self, request: HttpRequest) -> Reply:
        if request.path == "/api/v4/user":
            return Reply(body={"id": ME, "username": "tiller-bot"})
        if request.path == MERGE:
            refs = {"base_sha": self.base, "start_sha": self.base, "head_sha": self.head}
            return Reply(body={"iid": 7, "sha": self.head, "diff_refs": refs})
        if request.path == f"{MERGE}/discussions":
            return self._page(self.discussions, request)
        if request.path == f"{MERGE}/diffs":
            names = ("new_path", "old_path", "diff")
            return self._page([{n: getattr(f, n) for n in names} for f in self.files], request)
        return Reply(status=404, body={"message": "404 Not found"})

    def _delete(self, request: HttpRequest) -> Reply:
        for discussion in self.discussions:
            note = discussion["notes"][0]
            if request.path == f"{MERGE}/notes/{note['id']}" and note["author"]["id"] == ME:
                self.discussions.remove(discussion)
                return Reply(status=204)
        return Reply(status=404, body={"message": "404 Not found"})

    def _page(self, items: list[Any], request: HttpRequest) -> Reply:
        size = min(int(request.query["per_page"]), self.page_size)
        number = int(request.query["page"])
        shown, after = page(items, after=str((number - 1) * size), size=size)
        return Reply(body=shown, headers={"X-Next-Page": str(number + 1) if after else ""})

    def _resolve(self, request: HttpRequest) -> Reply:
        if not self.may_resolve:
            return Reply(status=403, body={"message": "403 Forbidden"})
        for discussion in self.discussions:
            if request.path == f"{MERGE}/discussions/{discussion['id']}":
                discussion["notes"][0]["resolved"] = request.query["resolved"] == "true"
                return Reply(body=discussion)
        return Reply(status=404, body={"message": "404 Discussion Not Found"})

    def _change(self, what: str, body: Any) -> Reply:
        if what == f"POST {MERGE}/notes":
            return Reply(status=201, body=self.add(body["body"])["notes"][0])
        if what == f"POST {MERGE}/discussions":
            return self._discuss(body)
        if found := re.fullmatch(rf"PUT {MERGE}/(?:discussions/\w+/)?notes/(\d+)", what):
            for note in self.notes():
                if note["id"] == int(found[1]) and note["author"]["id"] == ME:
                    note["body"] = body["body"]
                    return Reply(body=note)
        return Reply(status=404, body={"message": "404 Not found"})

    def _discuss(self, body: Any) -> Reply:
        position = body.get("position")
        if not self._takes(position):
            message = '400 Bad request - Note {:line_code=>["can\'t be blank"]}'
            return Reply(status=400, body={"message": message})
        return Reply(status=201, body=self.add(body["body"], position=position))

    def _takes(self, position: Any) -> bool:
        file = next((f for f in self.files if f.new_path == position["new_path"]), None)
        commits = [position[f"{name}_sha"] for name in ("base", "start", "head")]
        if file is None or commits != [self.base, self.base, self.head]:
            return False
        if position["old_path"] != file.old_path:
            return False
        if position["position_type"] == "file":
            return "new_line" not in position
        line = position["new_line"]
        return line in file.shown and position.get("old_line") == file.shown[line]
