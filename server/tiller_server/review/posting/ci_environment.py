"""Target to which a review is posted, read from the environment of a GitHub or GitLab job."""

import re
from collections.abc import Mapping
from typing import ClassVar, Final, TypeAlias
from urllib.parse import urlsplit

import anyio
from typing_extensions import override

from agent_core.kernel.json import JsonValue, decode
from agent_core.kernel.values import SecretValue
from tiller_server.review.posting.errors import TargetMissing

REPOSITORY: Final = re.compile(r"[A-Za-z0-9_-]+/(?!\.\.?$)[A-Za-z0-9_.-]+")
PULL_REF: Final = re.compile(r"refs/pull/(\d+)/")
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
GITHUB_API: Final = "https://api.github.com"
GITLAB_API: Final = "https://gitlab.com/api/v4"
EVENT_BYTES: Final = 4 * 1024 * 1024
GITHUB_TOKENS: Final = ("TILLER_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
GITLAB_TOKENS: Final = ("TILLER_GITLAB_TOKEN", "GITLAB_TOKEN")


class GitHubPull(SecretValue, frozen=True, kw_only=True):
    """A pull request."""

    hidden: ClassVar = frozenset({"token"})

    api_url: str = GITHUB_API
    graphql_url: str = f"{GITHUB_API}/graphql"
    repository: str
    """`owner/name`."""
    number: int
    token: str

    @override
    def __str__(self) -> str:
        return f"pull request {self.number} of {self.repository}"


class GitLabMerge(SecretValue, frozen=True, kw_only=True):
    """A merge request."""

    hidden: ClassVar = frozenset({"token"})

    api_url: str = GITLAB_API
    project: str
    """Its number, or its path with slashes."""
    iid: int
    token: str

    @override
    def __str__(self) -> str:
        return f"merge request {self.iid} of project {self.project}"


class GiteaPull(SecretValue, frozen=True, kw_only=True):
    """A pull request of Gitea or Forgejo."""

    hidden: ClassVar = frozenset({"token"})

    api_url: str
    """Ends with `/api/v1`."""
    repository: str
    """`owner/name`."""
    number: int
    token: str

    @override
    def __str__(self) -> str:
        return f"pull request {self.number} of {self.repository}"


PostingTarget: TypeAlias = GitHubPull | GitLabMerge | GiteaPull


async def target_from(variables: Mapping[str, str]) -> PostingTarget:
    """Read where to post from a job's environment.

    Raises:
        TargetMissing: The job belongs to no pull or merge request, or has no token.
    """
    if variables.get("GITLAB_CI") or "CI_MERGE_REQUEST_IID" in variables:
        return _gitlab(variables)
    if variables.get("GITHUB_ACTIONS") or "GITHUB_REPOSITORY" in variables:
        return await _github(variables)
    message = (
        "nothing says where to post: --post works in jobs of GitHub Actions and GitLab CI; elsewhere set "
        "GITHUB_REPOSITORY, TILLER_PULL_REQUEST and GITHUB_TOKEN, or CI_API_V4_URL, CI_PROJECT_ID, "
        "CI_MERGE_REQUEST_IID and TILLER_GITLAB_TOKEN"
    )
    raise TargetMissing(message)


async def _github(variables: Mapping[str, str]) -> GitHubPull:
    repository = variables.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY.fullmatch(repository):
        message = f"GITHUB_REPOSITORY is {repository!r}; it must be owner/name"
        raise TargetMissing(message)
    api_url = _url(variables, "GITHUB_API_URL", GITHUB_API)
    return GitHubPull(
        api_url=api_url,
        graphql_url=_url(variables, "GITHUB_GRAPHQL_URL", f"{api_url}/graphql"),
        repository=repository,
        number=await _pull_number(variables),
        token=_token(variables, GITHUB_TOKENS, "give the job `permissions: pull-requests: write`"),
    )


async def _pull_number(variables: Mapping[str, str]) -> int:
    given = variables.get("TILLER_PULL_REQUEST", "")
    if given.isascii() and given.isdecimal():
        return int(given)
    ref = PULL_REF.match(variables.get("GITHUB_REF", ""))
    if ref is not None:
        return int(ref[1])
    number = _number_in(await _event(variables.get("GITHUB_EVENT_PATH", "")))
    if number is None:
        message = (
            "this job belongs to no pull request, so there is nowhere to post; run it on `pull_request`, "
            "or set TILLER_PULL_REQUEST to its number"
        )
        raise TargetMissing(message)
    return number


async def _event(path: str) -> JsonValue:
    if not path:
        return None
    try:
        async with await anyio.open_file(path, "rb") as file:
            return decode(await file.read(EVENT_BYTES))
    except (OSError, ValueError):
        return None  # the caller says what is missing


def _number_in(event: JsonValue) -> int | None:
    pull = event.get("pull_request") if isinstance(event, Mapping) else None
    number = pull.get("number") if isinstance(pull, Mapping) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _gitlab(variables: Mapping[str, str]) -> GitLabMerge:
    iid, project = variables.get("CI_MERGE_REQUEST_IID", ""), variables.get("CI_PROJECT_ID", "")
    if not (iid.isascii() and iid.isdecimal()):
        message = (
            "this job belongs to no merge request, so there is nowhere to post; run it in merge request "
            'pipelines: rules: - if: $CI_PIPELINE_SOURCE == "merge_request_event"'
        )
        raise TargetMissing(message)
    if not project:
        message = "CI_PROJECT_ID is not set; it must be the number or the path of the project"
        raise TargetMissing(message)
    advice = "add a project access token (role Developer, scope api) as masked variable TILLER_GITLAB_TOKEN"
    return GitLabMerge(
        api_url=_url(variables, "CI_API_V4_URL", GITLAB_API),
        project=project,
        iid=int(iid),
        token=_token(variables, GITLAB_TOKENS, advice),
    )


def _url(variables: Mapping[str, str], name: str, default: str) -> str:
    url = (variables.get(name) or default).rstrip("/")
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    except ValueError:
        is_safe = False
    if not is_safe:
        message = f"{name} is {url!r}; a token is sent there, so it must begin with https://"
        raise TargetMissing(message)
    return url


def _token(variables: Mapping[str, str], names: tuple[str, ...], advice: str) -> str:
    found = next((variables[name].strip() for name in names if variables.get(name)), "")
    if not found:
        message = f"there is no token to post with: set {names[0]} or {names[1]} ({advice})"
        raise TargetMissing(message)
    if not (found.isascii() and found.isprintable()):
        message = (
            f"the token in {names[0]} or {names[1]} has signs that no token has; copy it again"
        )
        raise TargetMissing(message)
    return found
