"""Why answers ended, as session files name it."""

from collections.abc import Mapping

from agent_core.messages.values import StopReason

STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
STOP_NAMES: Mapping[StopReason, str] = {value: key for key, value in STOP_REASONS.items()}
