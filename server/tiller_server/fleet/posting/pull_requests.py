"""Pull and merge requests for the branches of a fleet: looked for by branch, opened once, and edited in place.

GitHub: https://docs.github.com/rest/pulls/pulls. GitLab: https://docs.gitlab.com/api/merge_requests. Gitea and Forgejo:
https://docs.gitea.com/api (repoListPullRequests, repoCreatePullRequest, repoEditPullRequest).
"""

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value
from tiller_server.fleet.forges import Forge
from tiller_server.review.posting.errors import HostRefused, HostUnsure
from tiller_server.review.posting.http_client import (
    CodeHostClient,
    CodeHostResponse,
    RequestRules,
    refuse,
    unreadable,
)
from tiller_server.review.posting.json_fields import each, inside, text

MOST_PAGES: Final = 20
PER_PAGE: Final = 50
CONFLICTS: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Answers when there is such a request already; also for one that can never be made."""
ADVICE: Final[Mapping[int, str]] = {
    401: "the token is not valid (any more)",
    403: "the token needs the right to write pull or merge requests",
    404: "check the repository, and that the token may read it",
}


class PullText(Value, frozen=True, kw_only=True):
    """Title and body of a pull request."""

    title: str
    body: str


class PullRequest(Value, frozen=True, kw_only=True):
    """A pull or merge request that is open."""

    number: int
    branch: str
    base: str
    title: str
    body: str


class PullOrigin(Value, frozen=True, kw_only=True):
    """Origin of a change."""

    branch: str
    head: str
    is_fork: bool
    """Whether the branch is in another repository than the change."""


class PullRequestHost:
    """The pull or merge requests of one repository. Every method may raise a `PostingFailed`."""

    def __init__(self, forge: Forge, repo: str, *, clock: Clock, rules: RequestRules) -> None:
        """Prepare; nothing is sent yet. The caller closes it."""
        self._forge = forge
        self._repo = repo
        self._is_gitlab: Final = forge.kind == "gitlab"
        self._url: Final = (
            f"{forge.api_url}/projects/{quote(repo, safe='')}/merge_requests"
            if self._is_gitlab
            else f"{forge.api_url}/repos/{repo}/pulls"
        )
        self._api = CodeHostClient(forge.name, headers=forge.headers, clock=clock, rules=rules)

    async def source(self, number: int) -> PullOrigin:
        """Read where the commits of a change are."""
        body = inside(await self._get(f"{self._url}/{number}"))
        if self._is_gitlab:
            projects = {text(body.get(f"{side}_project_id")) for side in ("source", "target")}
            return PullOrigin(
                branch=text(body.get("source_branch")),
                head=text(body.get("sha")),
                is_fork=len(projects) > 1,
            )
        head = inside(body, "head")
        owner = text(inside(head, "repo").get("full_name"))
        return PullOrigin(
            branch=text(head.get("ref")),
            head=text(head.get("sha")),
            is_fork=owner.lower() != self._repo.lower(),
        )

    async def find(self, branch: str, base: str) -> PullRequest | None:
        """Return the oldest open request of a branch of the repository into another."""
        found: list[PullRequest] = []
        async for body in self._pages(branch, base):
            pull = _gitlab_pull(body) if self._is_gitlab else _pull(body, self._repo)
            if pull is not None and (pull.branch, pull.base) == (branch, base):
                found.append(pull)
        return min(found, key=lambda pull: pull.number, default=None)

    async def open(self, branch: str, base: str, wanted: PullText) -> None:
        """Open a request; one that is there already is no error.

        Raises:
            HostRefused: It cannot be opened.
        """
        names = {"source_branch": branch, "target_branch": base, "description": wanted.body}
        if not self._is_gitlab:
            names = {"head": branch, "base": base, "body": wanted.body}
        answer = await self._api.write("POST", self._url, body={"title": wanted.title, **names})
        if answer.is_done:
            return
        if answer.status in CONFLICTS and await self.find(branch, base) is not None:
            return
        raise self._refused(answer, what=f"open a pull request of {self._repo}")

    async def edit(self, pull: PullRequest, wanted: PullText) -> None:
        """Write the title and the body of a request anew."""
        body = {"title": wanted.title}
        body["description" if self._is_gitlab else "body"] = wanted.body
        method = "PUT" if self._is_gitlab else "PATCH"
        answer = await self._api.write(method, f"{self._url}/{pull.number}", body={**body})
        if not answer.is_done:
            raise self._refused(answer, what=f"edit pull request {pull.number} of {self._repo}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.aclose()

    async def _pages(self, branch: str, base: str) -> AsyncIterator[JsonObject]:
        owner = self._repo.split("/", 1)[0]
        query = {
            "github": {"state": "open", "head": f"{owner}:{branch}", "base": base},
            "gitlab": {"state": "opened", "source_branch": branch, "target_branch": base},
            "gitea": {"state": "open"},
        }[self._forge.kind]
        size = "limit" if self._forge.kind == "gitea" else "per_page"
        for page in range(1, MOST_PAGES + 1):
            asked = urlencode({**query, size: PER_PAGE, "page": page})
            listed = list(each(await self._get(f"{self._url}?{asked}")))
            for body in listed:
                yield body
            # A server of Gitea may have a limit below ours.
            if not listed or (len(listed) < PER_PAGE and self._forge.kind != "gitea"):
                return
        raise unreadable(self._forge.name, f"the pull requests of {self._repo}")

    async def _get(self, url: str) -> JsonValue:
        answer = await self._api.read("GET", url)
        if not answer.is_done:
            raise self._refused(answer, what=f"read the pull requests of {self._repo}")
        if answer.body is None:
            message = f"{self._forge.name} sent an answer that cannot be read"
            raise HostUnsure(message)
        return answer.body

    def _refused(self, answer: CodeHostResponse, *, what: str) -> HostRefused:
        return refuse(self._forge.name, answer, what=what, advice=ADVICE)


def _pull(body: JsonObject, repo: str) -> PullRequest | None:
    number = body.get("number")
    head = inside(body, "head")
    # A fork may have a branch of the same name.
    owner = text(inside(head, "repo").get("full_name"))
    if not isinstance(number, int) or owner.lower() != repo.lower():
        return None
    return PullRequest(
        number=number,
        branch=text(head.get("ref")),
        base=text(inside(body, "base").get("ref")),
        title=text(body.get("title")),
        body=text(body.get("body")),
    )


def _gitlab_pull(body: JsonObject) -> PullRequest | None:
    number = body.get("iid")
    if not isinstance(number, int) or body.get("source_project_id") != body.get(
        "target_project_id"
    ):
        return None
    return PullRequest(
        number=number,
        branch=text(body.get("source_branch")),
        base=text(body.get("target_branch")),
        title=text(body.get("title")),
        body=text(body.get("description")),
    )
