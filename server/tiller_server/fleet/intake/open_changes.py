"""Polling of open changes, for forges that webhooks do not come from, and for webhooks that were lost."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from anyio.to_thread import run_sync

from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.intake.webhooks import WebhookEvent, is_commit, is_ref
from tiller_server.review.posting.http_client import ANY_REQUEST, CodeHostClient, refuse
from tiller_server.review.posting.json_fields import each, inside, text

MOST_PAGES: Final = 20
PER_PAGE: Final = 50
NO_ADVICE: Final[Mapping[int, str]] = {}
Submit = Callable[[Forge, WebhookEvent], object]


async def poll(forge: Forge, repo: str, submit: Submit, *, clock: Clock) -> int:
    """Submit every open change of a repository; returns how many there are.

    Args:
        forge: With its token.
        repo: Path of the repository.
        submit: Submits an event, and blocks; a repeated one has no effect.
        clock: Time.

    Raises:
        PostingFailed: The forge cannot be read.
    """
    client = CodeHostClient(forge.name, headers=forge.headers, clock=clock, rules=ANY_REQUEST)
    count = 0
    try:
        for page in range(1, MOST_PAGES + 1):
            answer = await client.read("GET", _url(forge, repo, page))
            if not answer.is_done:
                raise refuse(forge.name, answer, what=f"list changes of {repo}", advice=NO_ADVICE)
            changes = list(each(answer.body))
            for change in changes:
                event = _event(forge, repo, change)
                if event is not None:
                    _ = await run_sync(submit, forge, event)
                    count += 1
            # A server of Gitea may have a limit below ours.
            if not changes or (len(changes) < PER_PAGE and forge.kind != "gitea"):
                break
    finally:
        await client.aclose()
    return count


def _url(forge: Forge, repo: str, page: int) -> str:
    if forge.kind == "gitlab":
        project = quote(repo, safe="")
        query = f"state=opened&per_page={PER_PAGE}&page={page}"
        return f"{forge.api_url}/projects/{project}/merge_requests?{query}"
    size = "limit" if forge.kind == "gitea" else "per_page"
    return f"{forge.api_url}/repos/{repo}/pulls?state=open&{size}={PER_PAGE}&page={page}"


def _event(forge: Forge, repo: str, change: JsonObject) -> WebhookEvent | None:
    if change.get("draft") is True:
        return None
    names: Mapping[str, Any] = (
        {
            "number": change.get("iid"),
            "head": text(change.get("sha")),
            "base": text(change.get("target_branch")),
        }
        if forge.kind == "gitlab"
        else {
            "number": change.get("number"),
            "head": text(inside(change, "head").get("sha")),
            "base": text(inside(change, "base").get("ref")),
        }
    )
    is_whole = (
        isinstance(names["number"], int) and is_commit(names["head"]) and is_ref(names["base"])
    )
    return WebhookEvent(delivery="", repo=repo, action="push", **names) if is_whole else None
