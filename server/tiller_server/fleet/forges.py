"""Forges of a fleet: addresses, tokens, and which repositories are worked on."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from agent_core.kernel.values import SecretValue, Value
from tiller_server.fleet.values import ChangeName
from tiller_server.review.posting.ci_environment import (
    GITHUB_API,
    GITLAB_API,
    LOOPBACK,
    GiteaPull,
    GitHubPull,
    GitLabMerge,
    PostingTarget,
)

ForgeKind = Literal["github", "gitlab", "gitea"]


class ForgeSettings(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A forge in the settings of the fleet. Its secrets are named by variables of the environment."""

    kind: ForgeKind
    api_url: str = ""
    """Empty: that of github.com or gitlab.com."""
    graphql_url: str = ""
    """Of GitHub; empty: below `api_url`."""
    clone_url: str = ""
    """Has `{repo}` for the path of the repository."""
    token_env: str = ""
    """Variable with the token of the API."""
    webhook_secret_env: str = ""
    """Variable with the secret of the webhooks; empty: none is accepted."""
    repos: tuple[str, ...] = ("*",)
    """Patterns of the repositories that are worked on."""
    polled: tuple[str, ...] = ()
    """Repositories whose open changes are polled."""
    push: bool = False
    """Whether jobs of kind `fix` and `maintain` push a branch and open a pull request; else their patch is kept."""


class Forge(SecretValue, frozen=True, kw_only=True):
    """A forge, with its secrets."""

    hidden: ClassVar = frozenset({"token", "webhook_secret"})

    name: str
    kind: ForgeKind
    api_url: str
    graphql_url: str
    clone_url: str
    token: str = ""
    webhook_secret: str = ""
    repos: Sequence[str] = ("*",)
    push: bool = False

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of a request to the API, with the token."""
        token = (
            {"PRIVATE-TOKEN": self.token}
            if self.kind == "gitlab"
            else {"Authorization": f"Bearer {self.token}"}
        )
        return {**token, "User-Agent": "tiller"}

    def has(self, repo: str) -> bool:
        """Return whether a repository is worked on."""
        return any(fnmatchcase(repo, pattern) for pattern in self.repos)

    def target(self, change: ChangeName) -> PostingTarget | None:
        """Return where the reviews of a change are posted; None: it is no change."""
        if not change.number:
            return None
        match self.kind:
            case "github":
                return GitHubPull(
                    api_url=self.api_url,
                    graphql_url=self.graphql_url,
                    repository=change.repo,
                    number=change.number,
                    token=self.token,
                )
            case "gitlab":
                return GitLabMerge(
                    api_url=self.api_url,
                    project=change.repo,
                    iid=change.number,
                    token=self.token,
                )
            case "gitea":
                return GiteaPull(
                    api_url=self.api_url,
                    repository=change.repo,
                    number=change.number,
                    token=self.token,
                )


def forge_problem(settings: ForgeSettings) -> str | None:
    """Return the first value that cannot be used, in one sentence."""
    if settings.kind == "gitea" and not (settings.api_url and settings.clone_url):
        return "a forge of kind gitea needs api_url and clone_url"
    if settings.clone_url and "{repo}" not in settings.clone_url:
        return (
            f"clone_url is {settings.clone_url!r}; it has {{repo}} for the path of the repository"
        )
    for url in (settings.api_url, settings.graphql_url, settings.clone_url):
        parts = urlsplit(url)
        # A repository on the disk gets no token.
        is_safe = parts.scheme == "https" or (url == settings.clone_url and parts.scheme == "file")
        if url and not is_safe and parts.hostname not in LOOPBACK:
            return f"{url!r} does not begin with https://, and a token is sent there"
    return None


def forge_of(name: str, settings: ForgeSettings, env: Mapping[str, str]) -> Forge:
    """Return a forge with the secrets that its settings name."""
    is_gitlab = settings.kind == "gitlab"
    api_url = settings.api_url.rstrip("/") or (GITLAB_API if is_gitlab else GITHUB_API)
    public = "https://gitlab.com/{repo}.git" if is_gitlab else "https://github.com/{repo}.git"
    return Forge(
        name=name,
        kind=settings.kind,
        api_url=api_url,
        graphql_url=settings.graphql_url or f"{api_url}/graphql",
        clone_url=settings.clone_url or public,
        token=env.get(settings.token_env, ""),
        webhook_secret=env.get(settings.webhook_secret_env, ""),
        repos=settings.repos,
        push=settings.push,
    )
