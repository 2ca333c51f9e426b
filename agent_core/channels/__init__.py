"""The port of front ends: the questions of a session to the user of a channel, and the driver that asks them."""

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
