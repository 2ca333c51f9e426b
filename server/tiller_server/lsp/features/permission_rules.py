"""`agent/permission/rules`: list, add and remove the standing answers."""

from collections.abc import Mapping
from typing import Any, Literal

from agent_core.events import RuleInfo
from agent_core.events.codec import value
from agent_core.events.permissions import RuleScope
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import PermissionRulesParams, RuleDraft, parse

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


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Do it; in force before the next check."""
    asked = parse(PermissionRulesParams, params, method="agent/permission/rules")
    open_session = await client.resolve_session()
    permissions = open_session.session.permissions
    rule = asked.rule
    try:
        if asked.op == "add" and rule is not None:
            client.dialogs.check_may_decide()
            rules = await permissions.add(_rule(rule))
        elif asked.op == "remove" and rule is not None:
            client.dialogs.check_may_decide()
            rules = await permissions.remove(rule.id or "")
        elif asked.op == "list":
            rules = await permissions.refresh()
        else:
            message = f"op must be list, add or remove, got {asked.op!r}"
            raise invalid_params(message)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
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
