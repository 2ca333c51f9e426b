"""Webhooks of changes as the three kinds of forges send them."""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

SECRET = "hook-secret"
ACTIONS: Mapping[str, Mapping[str, str]] = {
    "github": {"open": "opened", "push": "synchronize", "close": "closed", "merge": "closed"},
    "gitea": {"open": "opened", "push": "synchronized", "close": "closed", "merge": "closed"},
    "gitlab": {"open": "open", "push": "update", "close": "close", "merge": "merge"},
}


def payload(
    forge: str, action: str, *, head: str = "a", repo: str = "team/app", number: int = 3
) -> Any:
    """Return the body of a delivery of a change."""
    sha = head if len(head) > 1 else head * 40
    name = ACTIONS[forge][action]
    if forge == "gitlab":
        merge = {"iid": number, "action": name, "last_commit": {"id": sha}, "target_branch": "main"}
        if action == "push":
            merge["oldrev"] = "0" * 40
        project = {"path_with_namespace": repo}
        return {"object_kind": "merge_request", "object_attributes": merge, "project": project}
    pull = {"head": {"sha": sha}, "base": {"ref": "main"}, "merged": action == "merge"}
    return {
        "action": name,
        "number": number,
        "pull_request": pull,
        "repository": {"full_name": repo},
    }


def signed(forge: str, body: bytes, delivery: str, *, secret: str = SECRET) -> dict[str, str]:
    """Return the headers of a delivery, with the signature of its body."""
    digest = hmac.new(secret.encode(), body, sha256).hexdigest()
    if forge == "github":
        signature = {"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Event": "pull_request"}
        return {**signature, "X-GitHub-Delivery": delivery}
    if forge == "gitea":
        signature = {"X-Gitea-Signature": digest, "X-Gitea-Event": "pull_request"}
        return {**signature, "X-Gitea-Delivery": delivery}
    return {"X-Gitlab-Token": secret, "X-Gitlab-Event-UUID": delivery}
