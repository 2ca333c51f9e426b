"""`agent/permission/rules`: list, add and remove the standing answers."""

from collections.abc import Mapping
from typing import Literal

from agent_core.events import RuleInfo
from agent_core.events.codec import value
from agent_core.events.values import RuleScope
from agent_core.kernel import JsonObject
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.permissions import (
    PERMISSION_RULES,
    PermissionRulesParams,
    RuleDraft,
)

SCOPES: Mapping[str, RuleScope] = {
    "run": "run",
    "session": "session",
    "project": "project",
    "user": "user",
}
VERDICTS: Mapping[str, Literal["allow", "ask", "deny"]] = {
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
}


@feature(PERMISSION_RULES)
async def permission_rules(client: ConnectedClient, params: PermissionRulesParams) -> JsonObject:
    """Do it; in force before the next check."""
    open_session = await client.resolve_session()
    permissions = open_session.session.permissions
    rule = params.rule
    with translated_errors(session=open_session.session.id):
        if params.op == "add" and rule is not None:
            client.dialogs.check_may_decide()
            rules = await permissions.add(_rule(rule))
        elif params.op == "remove" and rule is not None:
            client.dialogs.check_may_decide()
            rules = await permissions.remove(rule.id or "")
        elif params.op == "list":
            rules = await permissions.refresh()
        else:
            message = f"op must be list, add or remove, got {params.op!r}"
            raise invalid_params(message)
    await client.flush()
    return {"rules": [value(one) for one in rules]}


def _rule(draft: RuleDraft) -> RuleInfo:
    scope = SCOPES.get(draft.scope or "session")
    if scope is None:
        message = f"rule.scope must be run, session, project or user, got {draft.scope!r}"
        raise invalid_params(message)
    verdict = VERDICTS.get(draft.verdict or "")
    if verdict is None:
        message = f"rule.verdict must be allow, ask or deny, got {draft.verdict!r}"
        raise invalid_params(message)
    return RuleInfo(
        id=draft.id or "",
        tool=draft.tool or "",
        argv_prefix=tuple(draft.argv_prefix) if draft.argv_prefix else None,
        path=draft.path,
        host=draft.host,
        mcp=draft.mcp,
        verdict=verdict,
        scope=scope,
        match=tuple(draft.match or ()),
        not_match=tuple(draft.not_match or ()),
    )
