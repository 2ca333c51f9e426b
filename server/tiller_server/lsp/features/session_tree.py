"""`agent/session/tree`: everything that was ever said in a session, with its branches."""

from typing import Any

from anyio import to_thread

from agent_core.kernel import rfc3339
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import SessionTreeParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the entries and the leaf."""
    asked = parse(SessionTreeParams, params, method="agent/session/tree")
    tree = (await client.resolve_session(asked.session)).session.tree
    # A very long session takes seconds.
    nodes = await to_thread.run_sync(lambda: [_node(node) for node in tree.nodes()])
    return {"nodes": nodes, "leaf": tree.leaf}


def _node(node: Any) -> dict[str, Any]:
    out: dict[str, Any] = {
        "entry": node.entry,
        "kind": node.role or node.kind,
        "preview": node.preview,
        "at": rfc3339(node.at_ms),
    }
    if node.parent is not None:
        out["parent"] = node.parent
    return out if node.label is None else {**out, "label": node.label}
