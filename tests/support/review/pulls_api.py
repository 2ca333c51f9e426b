"""Pull and merge requests of a repository as forges list, open and edit them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.provider.http import HttpRequest
from tests.support.review.code_host import Reply

REPO = "o/r"


@dataclass(slots=True, kw_only=True)
class PullsApi:
    """The requests beside the one that is reviewed, which has number 7 and comes from `feature`."""

    is_gitlab: bool = False
    has_branch: Callable[[str], bool] = lambda _: True
    is_fork: bool = False
    """Whether the change that is reviewed comes from a fork."""
    is_draft: bool = False
    opened: list[Any] = field(default_factory=list)

    def answer(self, request: HttpRequest, body: Any, *, head: str) -> Reply | None:
        """Answer a request for pull requests; None: it is another one."""
        place = "/api/v4/projects/o%2Fr/merge_requests" if self.is_gitlab else "/repos/o/r/pulls"
        path = request.path.replace("o/r/merge", "o%2Fr/merge")
        number = path.removeprefix(f"{place}/")
        match request.method:
            case "GET" if path == place:
                return self._list(head, request)
            case "GET" if number == "7":
                return Reply(body=self._change(head))
            case "POST" if path == place:
                return self._open(body)
            case "PATCH" | "PUT" if number.isdecimal():
                return self._edit(int(number), body)
            case _:
                return None

    def texts(self) -> list[tuple[str, str, str]]:
        """Return branch, base and title of each."""
        if self.is_gitlab:
            return [(o["source_branch"], o["target_branch"], o["title"]) for o in self.opened]
        return [(o["head"]["ref"], o["base"]["ref"], o["title"]) for o in self.opened]

    def _list(self, head: str, request: HttpRequest) -> Reply:
        if int(request.query["page"]) > 1:
            return Reply(body=[])
        there = [one for one in self.opened if one["state"].startswith("open")]
        return Reply(body=[self._change(head), *there])

    def _change(self, head: str) -> Any:
        refs = {"base_sha": "b" * 40, "start_sha": "b" * 40, "head_sha": head}
        if self.is_gitlab:
            projects = {"source_project_id": 6 if self.is_fork else 5, "target_project_id": 5}
            return {
                "iid": 7,
                "sha": head,
                "source_branch": "feature",
                "target_branch": "main",
                "diff_refs": refs,
                "draft": self.is_draft,
            } | projects
        owner = {"full_name": "someone/r" if self.is_fork else REPO}
        source = {"sha": head, "ref": "feature", "repo": owner}
        return {"number": 7, "head": source, "base": {"ref": "main"}, "draft": self.is_draft}

    def _open(self, body: Any) -> Reply:
        names = ("source_branch", "target_branch") if self.is_gitlab else ("head", "base")
        branch, base = (body[name] for name in names)
        if not self.has_branch(branch) or not self.has_branch(base):
            return Reply(status=422, body={"message": "Validation Failed"})
        if any((b, into) == (branch, base) for b, into, _ in self.texts()):
            return Reply(status=409 if self.is_gitlab else 422, body={"message": "already exists"})
        number = 20 + len(self.opened)
        text = {"title": body["title"]}
        if self.is_gitlab:
            projects = {"source_project_id": 5, "target_project_id": 5}
            made = {"iid": number, "state": "opened", "description": body["description"]}
            made |= {"source_branch": branch, "target_branch": base, **projects}
        else:
            head = {"ref": branch, "repo": {"full_name": REPO}}
            made = {"number": number, "state": "open", "head": head, "base": {"ref": base}}
            text["body"] = body["body"]
        self.opened.append({**made, **text})
        return Reply(status=201, body=self.opened[-1])

    def _edit(self, number: int, body: Any) -> Reply:
        for one in self.opened:
            if one.get("iid", one.get("number")) == number:
                one.update(body)
                return Reply(body=one)
        return Reply(status=404, body={"message": "Not Found"})
