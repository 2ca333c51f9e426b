"""Which methods and commands there are, and which feature answers each: names only, nothing is loaded."""

from collections.abc import Mapping
from typing import Final

from tiller_server import VERSION

METHODS: Final[Mapping[str, str]] = {
    "agent/session/open": "session_open",
    "agent/session/list": "session_list",
    "agent/session/read": "session_read",
    "agent/session/configure": "session_configure",
    "agent/session/fork": "session_fork",
    "agent/session/close": "session_close",
    "agent/session/delete": "session_delete",
    "agent/session/export": "session_export",
    "agent/session/tree": "session_tree",
    "agent/session/navigate": "session_navigate",
    "agent/session/label": "session_label",
    "agent/session/rename": "session_rename",
    "agent/session/stats": "session_stats",
    "agent/subscribe": "subscribe",
    "agent/prompt": "prompt",
    "agent/steer": "steer",
    "agent/followUp": "follow_up",
    "agent/queue/update": "queue_update",
    "agent/run/cancel": "run_cancel",
    "agent/run/retry": "run_retry",
    "agent/compact": "compact",
    "agent/bash": "bash",
    "agent/review": "review",
    "agent/checkpoint/list": "checkpoint_list",
    "agent/checkpoint/preview": "checkpoint_preview",
    "agent/checkpoint/restore": "checkpoint_restore",
    "agent/changes/list": "changes_list",
    "agent/changes/resolve": "changes_resolve",
    "agent/permission/respond": "permission_respond",
    "agent/permission/rules": "permission_rules",
    "agent/question/respond": "question_respond",
    "agent/model/list": "model_list",
    "agent/model/cycle": "model_cycle",
    "agent/thinking/cycle": "thinking_cycle",
    "agent/command/list": "command_list",
    "agent/command/complete": "command_complete",
    "agent/resources/reload": "resources_reload",
    "agent/extension/list": "extension_list",
    "agent/extension/press": "extension_press",
    "agent/extension/render": "extension_render",
    "agent/auth/status": "auth_status",
    "agent/auth/login": "auth_login",
    "agent/auth/logout": "auth_logout",
    "agent/status": "status",
}

TRUST: Final = "agent/trust"
"""First of the notifications that clients send; they have no answer."""
ACK: Final = "agent/ack"
EDITOR_CONTEXT: Final = "agent/editorContext"
NOTIFICATIONS: Final[Mapping[str, str]] = {
    TRUST: "trust",
    ACK: "ack",
    EDITOR_CONTEXT: "editor_context",
}
CLIENT_REQUESTS: Final[tuple[str, ...]] = (
    "agent/permission",
    "agent/question",
    "agent/edit/apply",
    "agent/documents/save",
    "agent/documents/read",
    "agent/diagnostics",
    "agent/changes/show",
)
"""Requests that this server sends to clients that declare them."""
COMMANDS: Final[tuple[str, ...]] = (
    "tiller.send",
    "tiller.stop",
    "tiller.steer",
    "tiller.compact",
    "tiller.new",
    "tiller.accept",
    "tiller.reject",
    "tiller.apply",
    "tiller.restore",
    "tiller.review",
    "tiller.trust",
    "tiller.status",
    "tiller.model",
    "tiller.signIn",
    "tiller.rules",
    "tiller.chat",
    "tiller.changes",
    "tiller.answer",
    "tiller.fix",
    "tiller.implement",
    "tiller.explain",
    "tiller.comment",
)
ACTION_KINDS: Final[tuple[str, ...]] = ("quickfix.tiller", "refactor.tiller")
DIFF_SCHEME: Final = "tiller-diff"
"""Of the diff of what waits, for editors that show documents which are no files."""

CHAT_FILE: Final = ".tiller/chat.md"
"""Below the root of the workspace, unless `plain.chatFile` names another."""

PROTOCOL: Final = "1.0"
LEVEL: Final = 1
MAX_FRAME_BYTES: Final = 32 * 1024 * 1024
MAX_PROMPT_BYTES: Final = 8 * 1024 * 1024
QUEUE: Final = 32
EVENTS: Final[tuple[str, ...]] = (
    "session.state",
    "session.config",
    "session.roots",
    "session.usage",
    "session.title",
    "session.clients",
    "session.trust",
    "run.started",
    "run.ended",
    "turn.started",
    "turn.ended",
    "message.started",
    "message.delta",
    "message.ended",
    "thought.started",
    "thought.delta",
    "thought.ended",
    "tool.started",
    "tool.input.delta",
    "tool.running",
    "tool.output.delta",
    "tool.ended",
    "edit.applied",
    "edit.conflict",
    "edit.rejected",
    "edit.proposed",
    "edit.undone",
    "edit.saved",
    "changes.updated",
    "queue.changed",
    "permission.requested",
    "permission.resolved",
    "question.requested",
    "question.resolved",
    "compaction.started",
    "compaction.ended",
    "retry.started",
    "retry.ended",
    "model.changed",
    "leaf.moved",
    "checkpoint.created",
    "checkpoint.restored",
    "entry.labelled",
    "bash.started",
    "bash.output",
    "bash.ended",
    "notice",
    "error",
    "extension.error",
    "ui.notify",
    "ui.status",
    "ui.widget",
    "ui.title",
    "ui.editorText",
)
"""Types of the events that this server can send; a test compares them with the core's own table."""


def server_capability() -> dict[str, object]:
    """Return what the answer to `initialize` says of the agent."""
    return {
        "v": LEVEL,
        "protocol": PROTOCOL,
        "server": {"name": "tiller", "version": VERSION},
        "methods": [*METHODS, *NOTIFICATIONS],
        "events": list(EVENTS),
        "limits": {
            "maxFrameBytes": MAX_FRAME_BYTES,
            "maxPromptBytes": MAX_PROMPT_BYTES,
            "queue": QUEUE,
        },
    }
