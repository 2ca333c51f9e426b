"""The port of front ends: what a channel asks its user on behalf of a session, and the driver that asks it."""

from agent_core.channels.channel import (
    UNANSWERED,
    Channel,
    ChannelSession,
    PermissionAnswers,
    PermissionChoice,
    QuestionAnswers,
    QuestionReply,
    Unanswered,
)
from agent_core.channels.driver import serve_channel

__all__ = [
    "UNANSWERED",
    "Channel",
    "ChannelSession",
    "PermissionAnswers",
    "PermissionChoice",
    "QuestionAnswers",
    "QuestionReply",
    "Unanswered",
    "serve_channel",
]
