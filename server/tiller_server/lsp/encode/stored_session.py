"""Stored sessions and their numbers in the form of the wire."""

from pathlib import Path

from agent_core.events.codec import CURRENCY
from agent_core.kernel import JsonValue, rfc3339
from agent_core.session import AgentSession
from agent_core.session.snapshot import ContextUsage, SessionStats
from agent_core.storage import SessionSummary


def session_info(one: SessionSummary) -> dict[str, JsonValue]:
    """Return a stored session as a list shows it."""
    out: dict[str, JsonValue] = {
        "session": one.session,
        "workspace": Path(one.cwd).as_uri() if Path(one.cwd).is_absolute() else one.cwd,
        "created": rfc3339(one.created_ms),
        "modified": rfc3339(one.modified_ms),
        "messages": one.messages,
        "preview": one.preview,
    }
    more = {"title": one.title, "model": one.model, "parent": one.parent}
    return out | {key: text for key, text in more.items() if text is not None}


def new_session(session: AgentSession, *, root: Path, now_ms: int) -> dict[str, JsonValue]:
    """Return a session in which nothing was said, so that no file holds it."""
    return session_info(
        SessionSummary(
            session=session.id,
            location=None,
            cwd=str(root),
            created_ms=now_ms,
            modified_ms=now_ms,
            messages=0,
            title=session.tree.title,
            preview="",
        )
    )


def stats(one: SessionStats, context: ContextUsage) -> dict[str, JsonValue]:
    """Return what a session amounts to."""
    tokens = one.tokens
    out: dict[str, JsonValue] = {
        "messages": {
            "user": one.user_messages,
            "assistant": one.assistant_messages,
            "toolResult": one.tool_results,
            "other": one.other_messages,
        },
        "toolCalls": [
            {"name": name, "calls": calls} for name, calls in sorted(one.tool_calls.items())
        ],
        "tokens": {
            "in": tokens.input,
            "out": tokens.output,
            "cacheRead": tokens.cache_read,
            "cacheWrite": tokens.cache_write,
            "reasoning": tokens.reasoning,
        },
        "context": {"used": context.used, "size": context.size, "percent": context.percent},
    }
    if one.cost is not None:
        out["cost"] = {"amount": float(one.cost), "currency": CURRENCY, "estimated": True}
    return out
