"""Descriptions of a session for its user: the line below the input, its status and its cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from agent_core.events import (
    BackgroundInfo,
    ChangeCounts,
    PermissionMode,
    QueueItem,
    SessionConfig,
    TaskInfo,
    UsageReport,
)
from agent_core.kernel.text import cell_count
from agent_core.messages import Usage
from agent_core.session import AgentSession
from tiller_server.cli.terminal.text import one_line

MODE_MEANINGS: Final[Mapping[PermissionMode, str]] = {
    "plan": "read only",
    "ask": "asks before risky steps",
    "auto": "as ask, with your allow rules",
    "yolo": "asks only about protected files",
}


def mode_line(mode: PermissionMode) -> str:
    """Return a sentence about a permission mode."""
    return f"Permission mode {mode}: {MODE_MEANINGS[mode]}."


def background_lines(running: Sequence[BackgroundInfo]) -> str:
    """Return what runs in the background, a line each."""
    rows = [
        f"{one.id}  $ {one_line(one.command)}"
        + "".join(f"  http://localhost:{port}" for port in one.ports)
        + f"\n     {one.log}"
        for one in running
    ]
    return "\n".join(rows) or "Nothing runs in the background."


def task_lines(tasks: Sequence[TaskInfo]) -> str:
    """Return the tasks of a session, with what they used and how their changes are merged."""
    from tiller_server.cli.terminal.run_renderer import (  # noqa: PLC0415 - at first use
        merge_hint,
        task_state,
        task_usage,
    )

    rows: list[str] = []
    for one in tasks:
        below = [task_usage(one), hint] if (hint := merge_hint(one)) else [task_usage(one)]
        rows.append(f"{one.id}  {one_line(one.description)} · {task_state(one)}")
        rows += [f"    {text}" for text in below]
    return "\n".join(rows) or "There are no tasks."


class StatusSource(Protocol):
    """State of a session, as the line below the input shows it."""

    @property
    def config(self) -> SessionConfig:
        """Configuration in force."""
        ...

    @property
    def usage(self) -> UsageReport:
        """Tokens, cost and use of the context window."""
        ...

    @property
    def changes(self) -> ChangeCounts:
        """Changes that wait for a decision."""
        ...

    @property
    def queue(self) -> Sequence[QueueItem]:
        """Prompts that wait."""
        ...

    @property
    def title(self) -> str | None:
        """Title; None: it has none."""
        ...


def below(snapshot: StatusSource, columns: int) -> str:
    """Return the line below the input: model, mode, context use, cost, unreviewed changes, queue, title.

    Args:
        snapshot: The session.
        columns: How wide the line may be; the least important parts are left out first.
    """
    config, usage = snapshot.config, snapshot.usage
    # With each part, how early it is left out.
    parts = [(config.model or "no model", 1), (f"permission {config.mode}", 2)]
    if config.thinking != "off":
        parts.append((f"thinking {config.thinking}", 5))
    if usage.context_used and usage.context_size:
        parts.append((f"context {usage.context_used * 100 / usage.context_size:.0f} %", 3))
    if usage.tokens.cost is not None and usage.tokens.total:
        parts.append((f"${usage.tokens.cost.total:.4f}", 4))
    if snapshot.changes.unreviewed:
        parts.append((f"+{snapshot.changes.additions} -{snapshot.changes.deletions}", 6))
    if snapshot.queue:
        parts.append((f"{len(snapshot.queue)} queued", 2))
    if snapshot.title:
        parts.append((one_line(snapshot.title), 7))
    while len(parts) > 1 and cell_count(_joined(parts)) > columns:
        parts.remove(max(parts, key=lambda part: part[1]))
    return _joined(parts)


def _joined(parts: list[tuple[str, int]]) -> str:
    return " · ".join(text for text, _ in parts)


def session_status(session: AgentSession) -> str:
    """Return the state of a session, a line for each fact."""
    info = session.info
    stats, snapshot = info.stats(), info.snapshot()
    config = snapshot.config
    calls = ", ".join(f"{name} {count}" for name, count in stats.tool_calls.items()) or "none"
    return _table(
        {
            "session": session.id,
            "title": one_line(session.tree.title or "") or "none",
            "folder": info.root,
            "file": stats.file or "none: in memory, or no message yet",
            "model": f"{config.model or 'none'}, thinking {config.thinking}",
            "permission": f"{config.mode} ({MODE_MEANINGS[config.mode]})",
            "containment": snapshot.sandbox,
            "messages": f"{stats.user_messages} of yours, {stats.assistant_messages} answers",
            "tool calls": calls,
            "cost": _money(stats.tokens),
        }
    )


def session_cost(session: AgentSession) -> str:
    """Return the tokens and the cost of a session, a line for each kind."""
    return cost_lines(session.info.stats().tokens)


def cost_lines(tokens: Usage) -> str:
    """Return tokens and their cost, a line for each kind."""
    return _table(
        {
            "input": f"{tokens.input:,} tokens",
            "from the cache": f"{tokens.cache_read:,} tokens",
            "to the cache": f"{tokens.cache_write:,} tokens",
            "output": f"{tokens.output:,} tokens",
            "cost": _money(tokens),
        }
    )


def shared_status(state: StatusSource, *, session: str, root: Path) -> str:
    """Return the state of a session of the daemon, a line for each fact."""
    config = state.config
    return _table(
        {
            "session": session,
            "title": one_line(state.title or "") or "none",
            "folder": str(root),
            "model": f"{config.model or 'none'}, thinking {config.thinking}",
            "permission": f"{config.mode} ({MODE_MEANINGS[config.mode]})",
            "cost": _money(state.usage.tokens),
        }
    )


def _money(tokens: Usage) -> str:
    cost = tokens.cost
    return "unknown: the model has no known price" if cost is None else f"${cost.total:.4f}"


def _table(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())
