"""The app of a chat platform, as a plain value."""

from typing import Literal

from agent_core.kernel.values import Value
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.cli.doctor.check import Check

ChatAppName = Literal["lark", "slack"]
"""Names of the commands, and of their settings."""


class ChatApp(Value, frozen=True, kw_only=True):
    """The app of a platform as the settings of the user describe it."""

    bridge: BridgeConfig
    checks: tuple[Check, ...]
    """Of the settings; a bridge runs if none is missing."""
    variables: tuple[str, ...]
    """Variables of the environment with its secrets, in the order of the platform's secrets."""
    app_id: str = ""
    """Empty: the platform knows it from the secrets."""
    domain: str = ""
    """Installation of the platform; empty: there is only one."""
    missing: str = ""
    """Setting that has to be made before anything works; empty: none."""
