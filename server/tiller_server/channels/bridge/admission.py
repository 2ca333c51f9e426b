"""Which messages of a chat are for the agent, and which commands they are. Pure."""

from typing import Final

from agent_core.channels.messaging.port import InboundMessage
from agent_core.channels.messaging.store.bindings import PROVISIONAL
from agent_core.channels.messaging.store.inbox import NOT_ADDRESSED
from agent_core.kernel.values import Value
from tiller_server.channels.bridge.config import BridgeConfig

COMMANDS: Final = frozenset(
    {
        "new",
        "stop",
        "status",
        "queue",
        "compact",
        "model",
        "diff",
        "bind",
        "approve",
        "deny",
        "help",
    }
)


class BridgeCommand(Value, frozen=True, kw_only=True):
    """A command of the bridge."""

    name: str
    argument: str


class Ignored(Value, frozen=True, kw_only=True):
    """A message that is not for the agent."""

    reason: str
    reply: str = ""
    """Line for its author; empty: there is none."""


class Admitted(Value, frozen=True, kw_only=True):
    """A message for the agent."""

    command: BridgeCommand | None
    """Command that it is; None: a prompt."""


def admission(
    message: InboundMessage, config: BridgeConfig, *, answers_us: bool
) -> Admitted | Ignored:
    """Return whether a message is for the agent.

    Args:
        message: The message.
        config: People who may write, and chats that are served.
        answers_us: Whether it answers a message of ours.
    """
    is_group = message.chat_kind == "group"
    if message.sender.is_bot:
        return Ignored(reason="from a bot")
    if is_group and not (message.mentioned or answers_us):
        return Ignored(reason=NOT_ADDRESSED)
    if not (config.allow_groups if is_group else config.allow_direct):
        return Ignored(reason="this kind of chat is not served")
    if not config.may_talk(message.sender.id):
        reply = (
            f"You may not use this bot. An administrator can add your id, {message.sender.id}, to its list of people "
            "who may talk."
        )
        return Ignored(reason="the author may not talk", reply=reply)
    if not message.text.strip() and not message.attachments:
        return Ignored(reason="empty", reply="Write what is to be done.")
    return Admitted(command=command_of(message.text))


def command_of(text: str) -> BridgeCommand | None:
    """Return the command that a text is; None: it is a prompt, such as a template or a skill of the agent."""
    head, _, argument = text.strip().partition(" ")
    first, newline, rest = head.partition("\n")
    name = first[1:].lower()
    if not first.startswith("/") or name not in COMMANDS:
        return None
    return BridgeCommand(
        name=name, argument=f"{rest} {argument}".strip() if newline else argument.strip()
    )


def place_of(message: InboundMessage, *, has_threads: bool) -> str:
    """Return the place of the conversation that a message belongs to, or begins.

    Args:
        message: The message.
        has_threads: Whether the platform has threads.
    """
    if message.chat_kind == "direct" or not has_threads:
        return ""
    return message.target.thread or f"{PROVISIONAL}{message.key}"
