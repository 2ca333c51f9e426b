"""`agent/session/tree`: everything that was ever said in a session, with its branches."""

from anyio import to_thread

from agent_core.kernel import JsonObject, JsonValue, rfc3339
from agent_core.session import TreeNode
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_TREE, SessionTreeParams


@session_feature(SESSION_TREE)
async def session_tree(
    _client: ConnectedClient, open_session: OpenSession, _params: SessionTreeParams
) -> JsonObject:
    """Return the entries and the leaf."""
    tree = open_session.session.tree
    # A very long session takes seconds.
    nodes = await to_thread.run_sync(lambda: [_node(node) for node in tree.nodes()])
    return {"nodes": nodes, "leaf": tree.leaf}


def _node(node: TreeNode) -> JsonObject:
    out: dict[str, JsonValue] = {
        "entry": node.entry,
        "kind": node.role or node.kind,
        "preview": node.preview,
        "at": rfc3339(node.at_ms),
    }
    if node.parent is not None:
        out["parent"] = node.parent
    return out if node.label is None else {**out, "label": node.label}
