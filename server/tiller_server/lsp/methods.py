"""Names of the methods, commands and events of this server, known before anything heavy is loaded."""

import json
from pathlib import Path
from typing import Final

from tiller_server import VERSION

METHODS: Final[tuple[str, ...]] = (
    "agent/session/open",
    "agent/session/list",
    "agent/session/read",
    "agent/session/configure",
    "agent/session/fork",
    "agent/session/close",
    "agent/session/delete",
    "agent/session/export",
    "agent/session/tree",
    "agent/session/navigate",
    "agent/session/label",
    "agent/session/rename",
    "agent/session/stats",
    "agent/blob/read",
    "agent/blob/store",
    "agent/subscribe",
    "agent/prompt",
    "agent/steer",
    "agent/followUp",
    "agent/queue/update",
    "agent/run/cancel",
    "agent/run/retry",
    "agent/compact",
    "agent/plan/respond",
    "agent/background/move",
    "agent/background/stop",
    "agent/task/resume",
    "agent/task/stop",
    "agent/task/changes",
    "agent/task/merge",
    "agent/task/discard",
    "agent/bash",
    "agent/review",
    "agent/checkpoint/list",
    "agent/checkpoint/preview",
    "agent/checkpoint/restore",
    "agent/changes/list",
    "agent/changes/resolve",
    "agent/permission/respond",
    "agent/permission/rules",
    "agent/question/respond",
    "agent/model/list",
    "agent/model/cycle",
    "agent/thinking/cycle",
    "agent/command/list",
    "agent/command/complete",
    "agent/resources/reload",
    "agent/extension/list",
    "agent/extension/press",
    "agent/extension/render",
    "agent/auth/status",
    "agent/auth/login",
    "agent/auth/logout",
    "agent/status",
    "agent/costs",
)
"""Requests that this server answers. `feature_table` has the handlers; a test compares them with this list."""
NOTIFICATIONS: Final[tuple[str, ...]] = ("agent/trust", "agent/ack", "agent/editorContext")
"""Notifications that this server accepts."""
CLIENT_REQUESTS: Final[tuple[str, ...]] = (
    "agent/permission",
    "agent/question",
    "agent/edit/apply",
    "agent/documents/save",
    "agent/documents/read",
    "agent/file/read",
    "agent/file/write",
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
    "tiller.mergeTask",
    "tiller.trust",
    "tiller.status",
    "tiller.mode",
    "tiller.plan",
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
EVENTS_FILE: Final = Path(__file__).parent / "wire" / "events.json"
"""Types of the events that this server can send, generated: the classes of the core are not loaded yet."""


def server_capability() -> dict[str, object]:
    """Return what the answer to `initialize` says of the agent."""
    return {
        "v": LEVEL,
        "protocol": PROTOCOL,
        "server": {"name": "tiller", "version": VERSION},
        "methods": [*METHODS, *NOTIFICATIONS],
        "events": json.loads(EVENTS_FILE.read_bytes()),
        "limits": {
            "maxFrameBytes": MAX_FRAME_BYTES,
            "maxPromptBytes": MAX_PROMPT_BYTES,
            "queue": QUEUE,
        },
    }
