"""The app on whose behalf messages are read and sent."""

from typing import ClassVar, Final

from agent_core.kernel.values import SecretValue

BASE_URL: Final = "https://slack.com/api/"


class SlackAccount(SecretValue, frozen=True, kw_only=True):
    """An app of Slack in a workspace."""

    hidden: ClassVar[frozenset[str]] = frozenset({"app_token", "bot_token"})

    app_token: str
    """Token of Socket Mode, `xapp-…`, with the scope `connections:write`."""
    bot_token: str
    """Token of the bot, `xoxb-…`."""
    base_url: str = BASE_URL
    """Address of the Web API, with a slash at its end."""
