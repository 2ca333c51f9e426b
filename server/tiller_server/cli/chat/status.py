"""Descriptions of a session for its user: the line below the input, and its numbers."""

from agent_core.session import AgentSession
from agent_core.session.snapshot import SessionSnapshot
from tiller_server.cli.terminal.text import one_line


def below(snapshot: SessionSnapshot) -> str:
    """Return the line below the input: model, permission mode, context use, cost, unreviewed changes, queue, title."""
    config = snapshot.config
    parts = [config.model or "no model", f"thinking {config.thinking}", f"permission {config.mode}"]
    usage = snapshot.usage
    if usage.context_used and usage.context_size:
        parts.append(f"context {usage.context_used * 100 / usage.context_size:.0f} %")
    if usage.tokens.cost is not None and usage.tokens.total:
        parts.append(f"${usage.tokens.cost.total:.4f}")
    if snapshot.changes.unreviewed:
        parts.append(f"+{snapshot.changes.additions} -{snapshot.changes.deletions}")
    if snapshot.queue:
        parts.append(f"{len(snapshot.queue)} waiting")
    if snapshot.title:
        parts.append(one_line(snapshot.title))
    return " · ".join(parts)


def session_statistics(session: AgentSession) -> str:
    """Return the session in numbers, some lines."""
    stats = session.info.stats()
    calls = ", ".join(f"{name} {count}" for name, count in stats.tool_calls.items()) or "none"
    cost = "unknown" if stats.cost is None else f"${stats.cost:.4f}"
    tokens = stats.tokens
    rows = {
        "session": session.id,
        "title": one_line(session.tree.title or "") or "none",
        "folder": session.info.root,
        "file": stats.file or "none: it is in memory, or nothing was said yet",
        "messages": f"{stats.user_messages} of yours, {stats.assistant_messages} answers",
        "tool calls": calls,
        "tokens": f"{tokens.input:,} in, {tokens.output:,} out, {tokens.cache_read:,} from the cache",
        "cost": cost,
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())
