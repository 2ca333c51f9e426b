"""Webhooks of forges: their signature is checked before anything of the body is read. Pure.

GitHub: https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries. GitLab:
https://docs.gitlab.com/user/project/integrations/webhooks. Gitea and Forgejo: https://docs.gitea.com/usage/webhooks.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from agent_core.kernel.json import JsonObject, decode
from agent_core.kernel.values import Value
from tiller_server.fleet.errors import FleetError
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.values import ChangeName
from tiller_server.review.posting.json_fields import inside, text

ChangeAction = Literal["push", "closed", "merged", "other"]
GITHUB_PUSHES: Final = frozenset({"opened", "reopened", "synchronize", "ready_for_review"})
GITEA_PUSHES: Final = frozenset({"opened", "reopened", "synchronized"})
GITLAB_OPENED: Final = frozenset({"open", "reopen"})
SHA_CHARS: Final = (40, 64)
MOST_ID_CHARS: Final = 200


class WebhookForged(FleetError):
    """The signature of a webhook is missing or wrong."""


class WebhookUnreadable(FleetError):
    """A webhook that is signed has no delivery id, or is not what the forge documents."""


class WebhookEvent(Value, frozen=True, kw_only=True):
    """Event of a change."""

    delivery: str
    """Id by which the forge sends it again."""
    repo: str = ""
    number: int = 0
    action: ChangeAction = "other"
    head: str = ""
    base: str = ""

    def change(self, forge: str) -> ChangeName:
        """Return the name of the change."""
        return ChangeName(forge=forge, repo=self.repo, number=self.number)


def read_webhook(forge: Forge, headers: Mapping[str, str], body: bytes) -> WebhookEvent:
    """Check and read a webhook.

    Args:
        forge: With the secret of its webhooks.
        headers: With names in lower case.
        body: As it was received.

    Raises:
        WebhookForged: It is not signed with the secret, or the forge has no secret.
        WebhookUnreadable: It is signed, and cannot be read.
    """
    if not forge.webhook_secret or not _is_signed(forge, headers, body):
        message = f"the signature of the webhook is not that of the forge {forge.name!r}"
        raise WebhookForged(message)
    try:
        decoded = inside(decode(body))
    except ValueError as error:
        message = f"the body of the webhook is no JSON ({error})"
        raise WebhookUnreadable(message) from error
    match forge.kind:
        case "github":
            event = _of_pull(decoded, headers, prefix="x-github", pushes=GITHUB_PUSHES)
        case "gitea":
            event = _of_pull(decoded, headers, prefix="x-gitea", pushes=GITEA_PUSHES)
        case "gitlab":
            event = _of_gitlab(decoded, headers)
    if not event.delivery or len(event.delivery) > MOST_ID_CHARS:
        message = "the webhook has no delivery id"
        raise WebhookUnreadable(message)
    if event.action != "other" and not _is_whole(event):
        message = "the webhook names no repository, number or commit"
        raise WebhookUnreadable(message)
    return event


def _is_signed(forge: Forge, headers: Mapping[str, str], body: bytes) -> bool:
    secret = forge.webhook_secret.encode()
    if forge.kind == "gitlab":
        sent = headers.get("x-gitlab-token", "")
        # Hashes, because the time of a comparison depends on the length.
        return hmac.compare_digest(sha256(sent.encode()).digest(), sha256(secret).digest())
    expected = hmac.new(secret, body, sha256).hexdigest()
    if forge.kind == "github":
        sent = headers.get("x-hub-signature-256", "")
        expected = f"sha256={expected}"
    else:
        sent = headers.get("x-gitea-signature", "")
    return hmac.compare_digest(sent.encode(), expected.encode())


def _of_pull(
    body: JsonObject, headers: Mapping[str, str], *, prefix: str, pushes: frozenset[str]
) -> WebhookEvent:
    delivery = headers.get(f"{prefix}-delivery", "")
    if headers.get(f"{prefix}-event") != "pull_request":
        return WebhookEvent(delivery=delivery)
    pull = inside(body, "pull_request")
    number = body.get("number")
    action: ChangeAction = "other"
    if body.get("action") == "closed":
        action = "merged" if pull.get("merged") is True else "closed"
    elif body.get("action") in pushes and pull.get("draft") is not True:
        action = "push"
    return WebhookEvent(
        delivery=delivery,
        repo=text(inside(body, "repository").get("full_name")),
        number=number if isinstance(number, int) else 0,
        action=action,
        head=text(inside(pull, "head").get("sha")),
        base=text(inside(pull, "base").get("ref")),
    )


def _of_gitlab(body: JsonObject, headers: Mapping[str, str]) -> WebhookEvent:
    delivery = headers.get("x-gitlab-event-uuid", "")
    if body.get("object_kind") != "merge_request":
        return WebhookEvent(delivery=delivery)
    merge = inside(body, "object_attributes")
    number = merge.get("iid")
    action: ChangeAction = "other"
    match text(merge.get("action")):
        case "merge":
            action = "merged"
        case "close":
            action = "closed"
        case name if name in GITLAB_OPENED or (name == "update" and "oldrev" in merge):
            action = "other" if merge.get("draft") is True else "push"
        case _:
            pass
    return WebhookEvent(
        delivery=delivery,
        repo=text(inside(body, "project").get("path_with_namespace")),
        number=number if isinstance(number, int) else 0,
        action=action,
        head=text(inside(merge, "last_commit").get("id")),
        base=text(merge.get("target_branch")),
    )


def _is_whole(event: WebhookEvent) -> bool:
    return "/" in event.repo and event.number > 0 and is_commit(event.head) and is_ref(event.base)


def is_commit(name: str) -> bool:
    """Return whether a name is the whole hash of a commit."""
    return len(name) in SHA_CHARS and all(sign in "0123456789abcdef" for sign in name)


def is_ref(name: str) -> bool:
    """Return whether a name can stand for a branch in a command of Git."""
    return (
        bool(name)
        and not name.startswith(("-", "+"))
        and not any(sign in name for sign in ":*?[\\^~ \t\r\n\0")
        and ".." not in name
    )
